/* SPDX-License-Identifier: MIT */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "nettrace/nettrace.h"

static void *default_realloc(void *ctx, void *ptr, size_t size)
{
	(void)ctx;
	if (!size) {
		free(ptr);
		return NULL;
	}
	return realloc(ptr, size);
}

const struct nt_alloc nt_alloc_default = { .realloc = default_realloc, .ctx = NULL };

const char *nt_status_name(enum nt_status st)
{
	switch (st) {
	case NT_OK:
		return "ok";
	case NT_STOPPED:
		return "stopped";
	case NT_EFORMAT:
		return "damaged";
	case NT_ETRUNC:
		return "truncated";
	case NT_ELIMIT:
		return "limit reached";
	case NT_ENOMEM:
		return "out of memory";
	case NT_EVERSION:
		return "unsupported version";
	case NT_ESINK:
		return "consumer failed";
	}
	return "unknown status";
}

int nt_error_format(const struct nt_error *err, char *buf, size_t size)
{
	return snprintf(buf, size,
			"byte 0x%" PRIx64 ": %s (block %" PRIu64 ", %s, starts at 0x%" PRIx64
			", row %" PRIu64 "); %" PRIu64 " events before it were read",
			err->offset, err->what, err->block_index, err->block, err->block_offset,
			err->row, err->events_before);
}
