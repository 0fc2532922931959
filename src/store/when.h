/* SPDX-License-Identifier: MIT */
#ifndef SRC_STORE_WHEN_H
#define SRC_STORE_WHEN_H

/* Points in time on the command line and in output; always UTC. */

#include <stddef.h>
#include <stdint.h>

enum { WHEN_BYTES = 32 };

/*
 * "2026-11-29", "2026-11-29T10:30", "2026-11-29T10:30:00Z" (a space does for the T), "now", or a
 * duration: so long before now ("7d", "90m").  NULL, or the static reason.
 */
const char *when_parse(const char *text, int64_t now_ms, int64_t *ret_ms);

/* "2026-11-29T10:30:00Z"; ret holds WHEN_BYTES. */
const char *when_text(int64_t time_ms, char *ret);
/* "Wed 2026-11-25 10:30"; ret holds WHEN_BYTES. */
const char *when_text_day(int64_t time_ms, char *ret);

/* Now, as the machine's clock has it. */
int64_t when_now_ms(void);

#endif
