/* SPDX-License-Identifier: MIT */

/*
 * The decoder and the payload reader on arbitrary bytes.  The first byte of the input picks the
 * size of the chunks (0: all at once) and, by its top bit, the order of the file.
 */

#include "tests/fuzz/fuzz.h"

#include <stdlib.h>

#include "tests/support/failalloc.h"
#include "tests/support/probe.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const struct nt_limits tight = {
		.max_block = 1 << 16,
		.max_events_held = 1 << 10,
		.max_bytes_held = 1 << 18,
		.max_stack_bytes = 1 << 18,
		.max_ids = 1 << 10,
		.max_def_bytes = 1 << 18,
	};
	struct failalloc fa;
	struct nt_error err;
	struct probe p;
	enum nt_status st;

	if (size == 0)
		return 0;
	failalloc_init(&fa, 0);
	st = probe_decode(&fa.alloc, &tight, data[0] & 0x80 ? 0 : NT_TIME_ORDER, data + 1, size - 1,
			  data[0] & 0x7f, &p, &err);
	if (fa.live || fa.peak_bytes > 4 << 20)
		abort(); /* leaked, or limits do not hold */
	if (st != NT_OK && (err.code != st || err.offset > size))
		abort(); /* an error that does not say where */
	return 0;
}
