/* SPDX-License-Identifier: MIT */

/* All analyzers on arbitrary bytes: what a decoder lets through can still be nonsense. */

#include "tests/fuzz/fuzz.h"

#include <stdlib.h>

#include "tests/fuzz/robust.h"
#include "tests/support/failalloc.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct failalloc fa;

	failalloc_init(&fa, 0);
	if (robust_report(&fa.alloc, data, size) == NT_ENOMEM || fa.live)
		abort();
	return 0;
}
