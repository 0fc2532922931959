/* SPDX-License-Identifier: MIT */
#ifndef SRC_BASE_NATIVE_H
#define SRC_BASE_NATIVE_H

/* Numbers in this machine's order, from bytes that need not be aligned. */

#include <stdint.h>
#include <string.h>

static inline uint32_t native_load32(const uint8_t *p)
{
	uint32_t v;

	memcpy(&v, p, sizeof(v));
	return v;
}

static inline uint64_t native_load64(const uint8_t *p)
{
	uint64_t v;

	memcpy(&v, p, sizeof(v));
	return v;
}

#endif
