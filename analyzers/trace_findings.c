/* SPDX-License-Identifier: MIT */
#include "analyzers/trace_findings.h"

#include <inttypes.h>

static const char *const cut_advice[] = {
	[AN_CUT_UNKNOWN] =
		"All figures end there. The process died, or the recorder was killed, or the file "
		"was not copied whole; the end of a trace, with the names of methods, is missing. "
		"To record again: let the tool end by itself, or start the process with collect -- "
		"COMMAND to see how it ends.",
	[AN_CUT_TARGET] =
		"All that it had sent by then is in the figures and in the file. What comes at the "
		"end is missing: the names of code that it had loaded before the recording; "
		"--early-symbols asks for them at the start.",
	[AN_CUT_ASKED] =
		"All figures end there. The names of methods come at the end: stop but once, and "
		"wait for the tool to end by itself.",
	[AN_CUT_SILENT] =
		"All figures end there, and the names of methods, which come at the end, are "
		"missing. If it runs, it may need longer (--stop-timeout); --early-symbols asks "
		"for names at the start.",
};

/* After a fault in the middle decoding may have found its way on: then the figures have a hole. */
static void on_fault(const struct an_shared *s, struct an_report *out, const struct nt_error *err,
		     const struct nt_stats *stats)
{
	const struct an_input *in = s->input;
	uint64_t later = stats->events - err->events_before;
	char where[512];
	const char *title;

	nt_error_format(err, where, sizeof(where));
	if (err->code == NT_ETRUNC && in->cut_why)
		title = an_report_printf(out, "The recording is cut: %s", in->cut_why);
	else if (err->code == NT_ETRUNC)
		title = an_report_printf(
			out, "The trace is cut: nothing after byte %" PRIu64 " could be read",
			err->offset);
	else
		title = an_report_printf(out, "The trace is damaged at byte %" PRIu64, err->offset);
	if (later)
		an_add_finding(out, AN_CRITICAL, "trace.truncated", title,
			       an_report_printf(out,
						"%s; reading went on behind it: %" PRIu64
						" more events, %" PRIu64 " bytes skipped",
						where, later, stats->skipped_bytes),
			       "What was skipped is missing from all figures, and shows up as lost "
			       "events. "
			       "Take the file from its source again, or record again.");
	else
		an_add_finding(out, AN_CRITICAL, "trace.truncated", title, where,
			       cut_advice[err->code == NT_ETRUNC ? in->cut : AN_CUT_UNKNOWN]);
}

/* Frames without a name among all frames of the call tree, in percent; -1 without stacks. */
static double unnamed_percent(const struct an_shared *s)
{
	size_t nodes = s->tree ? an_calltree_count(s->tree) : 0, unnamed = 0;

	if (nodes < 2)
		return -1;
	for (size_t i = 1; i < nodes; i++)
		unnamed += !an_calltree_method(s->tree, (uint32_t)i);
	return 100.0 * (double)unnamed / (double)(nodes - 1);
}

static void check_names(const struct an_shared *s, struct an_report *out)
{
	const struct nt_error *err = nt_decoder_borrow_error(s->decoder);
	bool cut = err && err->code == NT_ETRUNC;
	double unnamed = unnamed_percent(s);
	const char *evidence;

	/* Fewer are stubs and code that was freed: nothing to tell. */
	if (unnamed < 0 || unnamed < an_limit(s, AN_LIMIT_TRACE_UNNAMED) ||
	    (s->trace.format >= 6 && !s->have_rundown))
		return;
	evidence = an_report_printf(out, "%.0f %% of the frames have no name; %zu methods known",
				    unnamed, an_methods_count(s->methods));
	if (an_looks_native(s)) {
		an_add_finding(out, AN_INFO, "trace.native-aot",
			       "Names of methods are missing: the target is compiled ahead of time",
			       evidence,
			       "NativeAOT programs do not describe their code in the trace. Use a "
			       "native profiler with the program's debug symbols for names.");
		return;
	}
	if (an_methods_rundown_complete(s->methods))
		return;
	an_add_finding(
		out, AN_CRITICAL, "trace.no-rundown",
		an_methods_rundown_begun(s->methods)
			? "Names of methods are incomplete: the rundown at the end was cut"
			: "Names of methods are missing: the trace has no rundown",
		evidence,
		cut ? "The runtime writes the names when the session is stopped, and it did not "
		      "come to that. collect --early-symbols asks for them at the start as well."
		    : "The runtime writes the names when the session is stopped: record without "
		      "--rundown false.");
}

static const char *lost_threads(const struct an_shared *s, struct an_report *out)
{
	const char *text = "";

	for (size_t i = 0; i < s->loss_count && i < 3; i++)
		text = an_report_printf(out, "%s%s thread %" PRIu64 ": %" PRIu64, text,
					i ? "," : "; most on", s->losses[i].thread_id,
					s->losses[i].lost);
	return text;
}

static void check_lost(const struct an_shared *s, struct an_report *out,
		       const struct nt_stats *stats)
{
	double share;

	if (!stats->lost)
		return;
	share = 100.0 * (double)stats->lost / (double)(stats->lost + stats->events);
	an_add_finding(
		out, share >= an_limit(s, AN_LIMIT_TRACE_LOST_CRITICAL) ? AN_CRITICAL : AN_WARNING,
		"trace.events-lost",
		an_report_printf(out, "%" PRIu64 " events were lost: counts are too low",
				 stats->lost),
		an_report_printf(out, "%.1f %% of %" PRIu64 " events%s", share,
				 stats->lost + stats->events, lost_threads(s, out)),
		stats->skipped_bytes || stats->damaged_records
			? "The file is damaged, and what lies in a damaged part counts as lost: "
			  "this says little about the recording."
			: "The runtime's buffer was full. Record with a larger --buffersize, fewer "
			  "providers or a lower level.");
}

static void check_oddities(struct an_report *out, const struct nt_stats *st)
{
	const struct {
		uint64_t count;
		const char *what;
	} odd[] = {
		{ st->unknown_metadata, "events of undefined kinds" },
		{ st->unknown_stacks, "events whose stack was never written" },
		{ st->unknown_threads, "events of undeclared threads" },
		{ st->unknown_labels, "events whose labels were never written" },
		{ st->bad_definitions, "unreadable event definitions" },
		{ st->skipped_blocks, "blocks of unknown kind" },
		{ st->damaged_records, "damaged records" },
		{ st->inconsistent, "sequence numbers that went back" },
		{ st->late, "events delivered out of order" },
		{ st->trailing_bytes, "bytes after the end" },
	};
	const char *text = "";

	for (size_t i = 0; i < sizeof(odd) / sizeof(odd[0]); i++)
		if (odd[i].count)
			text = an_report_printf(out, "%s%s%" PRIu64 " %s", text, *text ? ", " : "",
						odd[i].count, odd[i].what);
	if (*text)
		an_add_finding(out, AN_INFO, "trace.oddities",
			       "The trace has parts that could not be used as they are", text,
			       "The rest is whole. Compare with a fresh recording if figures look "
			       "odd.");
}

static void check_caps(const struct an_shared *s, struct an_report *out)
{
	uint64_t folded = s->tree ? an_calltree_folded(s->tree) : 0;
	uint64_t dropped = s->methods ? an_methods_dropped(s->methods) : 0;

	if (!folded && !dropped)
		return;
	an_add_finding(out, AN_WARNING, "trace.too-large",
		       "The trace has more code or stacks than memory was set aside for",
		       an_report_printf(out,
					"%" PRIu64 " stacks counted as [other], %" PRIu64
					" pieces of code without a name",
					folded, dropped),
		       "Record for a shorter time: shares stay right, rare stacks are missing.");
}

void an_trace_findings(const struct an_shared *s, struct an_report *out)
{
	const struct nt_error *err = nt_decoder_borrow_error(s->decoder);
	const struct nt_stats *stats = nt_decoder_borrow_stats(s->decoder);

	if (err)
		on_fault(s, out, err, stats);
	if (s->input->file_cut)
		an_add_finding(
			out, AN_WARNING, "trace.file-cut",
			"The file holds only the beginning of what was analysed",
			s->input->file_cut,
			"This report covers the whole session; another one from the file would "
			"not.");
	if (s->methods)
		check_names(s, out);
	if (!s->have_events)
		an_add_finding(out, AN_WARNING, "trace.empty", "The trace holds no events",
			       an_report_printf(out, "%" PRIu64 " bytes read", stats->bytes),
			       "Record longer, or enable providers whose events occur.");
	check_lost(s, out, stats);
	check_oddities(out, stats);
	check_caps(s, out);
}
