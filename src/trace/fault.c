/* SPDX-License-Identifier: MIT */
#include "src/trace/fault.h"

#include <inttypes.h>
#include <string.h>

#include "src/base/command.h"
#include "src/base/log.h"
#include "src/trace/analysis.h"

enum { COMMON_WINDOW = 27 }; /* what zstd --long gives */

struct kind {
	const char *magic;
	size_t offset, len;
	const char *what;
	const char *advice;
};

static const struct kind kinds[] = {
	{ "\x0a\0\0\0GCHeapDump", 0x23, 14, "a heap snapshot (.gcdump)",
	  "heap snapshots are not supported yet" },
	{ "\x1f\x8b", 0, 2, "gzip data",
	  "unpack it first: gzip -dc FILE | drdotnet-trace report -" },
	{ "\3757zXZ", 0, 5, "xz data", "unpack it first: xz -dc FILE | drdotnet-trace report -" },
	{ "BZh", 0, 3, "bzip2 data", "unpack it first: bzip2 -dc FILE | drdotnet-trace report -" },
	{ "PK\x03\x04", 0, 4, "a zip archive", "unpack it first" },
	{ "\177ELF", 0, 4, "an ELF file (a program or a core dump)", NULL },
	{ "PERFILE2", 0, 8, "a perf.data file", NULL },
	{ "{", 0, 1, "JSON text",
	  "the recorded .nettrace file is needed, not what was made of it" },
};

const char *fault_recognise(const void *data, size_t len, const char **ret_advice)
{
	const char *p = data;

	*ret_advice = NULL;
	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		const struct kind *k = &kinds[i];

		if (len < k->offset + k->len || memcmp(p + k->offset, k->magic, k->len) != 0)
			continue;
		*ret_advice = k->advice;
		return k->what;
	}
	return NULL;
}

/* No valid header: the input is something else, or not there at all. */
static int nothing_readable(const struct input *in, const struct nt_decoder *d)
{
	const void *head;
	const char *advice, *what;
	size_t len = input_head(in, &head);

	if (!len && !input_fault(in)) {
		log_error("cannot read '%s': byte 0x0: it is empty", input_name(in));
		return EXIT_FAILED;
	}
	if (!len) {
		log_error("cannot read '%s': byte 0x%" PRIx64 ": %s", input_name(in),
			  input_raw_bytes(in), input_fault_text(in));
		return EXIT_FAILED;
	}
	what = fault_recognise(head, len, &advice);
	if (!what)
		return analysis_fault(d, input_name(in));
	log_error("cannot read '%s': byte 0x0: it is %s, not a trace", input_name(in), what);
	if (advice)
		log_advice("%s", advice);
	return EXIT_FAILED;
}

/* The trace was complete when the input went wrong. */
static int fault_after_end(const struct input *in)
{
	if (input_fault(in) == INPUT_CUT || input_fault(in) == INPUT_TRAILING) {
		log_warn("'%s': %s (the trace in it is complete)", input_name(in),
			 input_fault_text(in));
		return EXIT_DONE;
	}
	log_error("cannot read all of '%s': near byte 0x%" PRIx64 " of the file: %s",
		  input_name(in), input_raw_bytes(in), input_fault_text(in));
	return EXIT_PARTIAL;
}

int fault_report(const struct input *in, const struct nt_decoder *d)
{
	bool header = nt_decoder_borrow_trace(d) != NULL;
	const struct nt_error *err = nt_decoder_borrow_error(d);
	int code;

	if (!err && !input_fault(in))
		return EXIT_DONE;
	if (!err)
		return fault_after_end(in);
	code = header ? analysis_fault(d, input_name(in)) : nothing_readable(in, d);
	if (input_fault(in) == INPUT_READ)
		log_advice("%s", strerror(input_read_errno(in)));
	else if (input_fault(in) == INPUT_WINDOW)
		log_advice("allow it the memory: --zstd-window %d",
			   input_window_log(in) < COMMON_WINDOW ? COMMON_WINDOW
								: INPUT_WINDOW_LOG_MAX);
	else if (input_is_zstd(in) && header)
		log_advice("offsets count unpacked bytes; the file was read to byte 0x%" PRIx64,
			   input_raw_bytes(in));
	return code;
}
