/* SPDX-License-Identifier: MIT */

/* The zstd reader: arbitrary bytes as a file, decompressed and decoded. */

#include "tests/fuzz/fuzz.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "src/trace/input.h"
#include "tests/support/probe.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct probe p = { 0 };
	struct nt_decoder *d = nt_decoder_new(NULL, NULL, NT_TIME_ORDER, &probe_sink, &p);
	int fd = memfd_create("input", MFD_CLOEXEC);
	struct input *in = NULL;
	char path[64];

	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	if (!d || fd < 0 || write(fd, data, size) != (ssize_t)size)
		abort();
	in = input_open(path, INPUT_WINDOW_LOG_MIN + 10);
	if (!in)
		abort();
	if (input_feed(in, d) == NT_OK && input_fault(in) != INPUT_OK)
		abort(); /* a fault of the input must not end in success */
	input_close(in);
	nt_decoder_free(d);
	close(fd);
	return 0;
}
