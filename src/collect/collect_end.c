/* SPDX-License-Identifier: MIT */
#include "src/collect/collect_end.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "src/base/command.h"
#include "src/base/log.h"
#include "src/collect/collect_progress.h"
#include "src/collect/providers.h"
#include "src/ipc/process_list.h"

enum { LOOK_AGAIN_MS = 10, LOOK_TIMES = 30 };

void collect_say_gave_up(unsigned gave_up)
{
	static const struct {
		unsigned bit;
		const char *text;
	} rows[] = {
		{ IPC_GAVE_UP_BLOCK, "it cannot wait for us: events are dropped when its buffers "
				     "are full" },
		{ IPC_GAVE_UP_FILTER,
		  "it cannot filter events by their ids: all are recorded, and the "
		  "report leaves them out" },
		{ IPC_GAVE_UP_RUNDOWN_KEYWORDS,
		  "it cannot choose its rundown: it sends all of it" },
		{ IPC_GAVE_UP_NO_STACKS, "it cannot leave out stacks" },
		{ IPC_GAVE_UP_NO_RUNDOWN, "it cannot leave out the rundown" },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		if (gave_up & rows[i].bit)
			log_warn("this runtime is older than the wish: %s", rows[i].text);
}

/* --- how the target ended --- */

static void sleep_ms(unsigned ms)
{
	nanosleep(&(struct timespec){ .tv_nsec = (long)ms * 1000000 }, NULL);
}

static void describe_exit(bool exited, int code, int signal, char *buf, size_t size)
{
	if (!exited)
		snprintf(buf, size, "the process was killed by signal %d (%s)", signal,
			 strsignal(signal));
	else if (code != 0)
		snprintf(buf, size, "the process ended with exit code %d", code);
	else
		snprintf(buf, size, "the process ended (killed or crashed)");
}

/* A process that dies closes its sockets a moment before it shows as ended. */
static void describe_target(const struct ipc_target *t, char *buf, size_t size)
{
	struct proc_stat st;

	for (unsigned i = 0; i < LOOK_TIMES; i++) {
		if (!proc_read_stat(PROC_ROOT, t->pid, &st) ||
		    st.start_ticks != t->stat.start_ticks) {
			snprintf(buf, size, "the process ended (killed or crashed)");
			return;
		}
		if (st.state == 'Z' || st.state == 'X') {
			bool told = st.have_exit_code;

			describe_exit(!told || WIFEXITED(st.exit_code),
				      told ? WEXITSTATUS(st.exit_code) : 0,
				      told ? WTERMSIG(st.exit_code) : 0, buf, size);
			return;
		}
		sleep_ms(LOOK_AGAIN_MS);
	}
	snprintf(buf, size, "the process still runs, but it closed the session");
}

static void describe_end(const struct collect_subject *who, const struct analysis_child *child,
			 char *buf, size_t size)
{
	if (child && child->pid == who->pid)
		describe_exit(child->exited, child->exit_code, child->signal, buf, size);
	else if (who->target && !who->target->foreign)
		describe_target(who->target, buf, size);
	else
		snprintf(buf, size,
			 "the connection ended; how the process ended is not available: "
			 "it cannot be seen from here");
}

/* --- no session --- */

static int refuse(const struct collect_subject *who, const struct session_end *end)
{
	const struct ipc_target *t = who->target;
	struct process_hold hold;
	bool held = end->why == SESSION_TIMEOUT && process_is_held(PROC_ROOT, t, &hold);
	char why[256];

	if (held)
		snprintf(why, sizeof(why), "%s", hold.why);
	else if (t && end->why == SESSION_UNREACHABLE &&
		 (end->error == -EACCES || end->error == -EPERM))
		process_whose(t, why, sizeof(why));
	else if (end->why == SESSION_UNREACHABLE && end->error == -ECONNREFUSED)
		snprintf(why, sizeof(why), "its diagnostic socket is dead, or it is just ending");
	else
		session_describe(end, why, sizeof(why));
	log_error("cannot trace process %" PRId32 " (%s): %s", who->pid, who->name, why);
	if (end->why == SESSION_TIMEOUT)
		log_advice("%s", held ? hold.advice
				      : "it may be overloaded, or another tool may block its "
					"diagnostics; --timeout waits longer");
	switch (end->why) {
	case SESSION_NO_MEMORY:
		return EXIT_FAILED;
	case SESSION_BAD_REQUEST:
		return EXIT_USAGE;
	default:
		return EXIT_UNREACHABLE;
	}
}

/* --- what is missing in the stream --- */

struct cut {
	enum an_cut how;
	char why[256];
};

static void say_why_cut(const struct collect_subject *who, const struct collect_facts *facts,
			const struct analysis_child *child, bool begun, struct cut *ret)
{
	struct process_hold hold = { .advice = "" };
	size_t size = sizeof(ret->why);

	ret->how = AN_CUT_SILENT;
	if (facts->forced) {
		ret->how = AN_CUT_ASKED;
		snprintf(ret->why, size, "stopped at once, without the rundown");
	} else if ((facts->end.why == SESSION_STOP_TIMEOUT || facts->end.why == SESSION_SILENT) &&
		   process_is_held(PROC_ROOT, who->target, &hold)) {
		snprintf(ret->why, size, "%s", hold.why);
	} else if (facts->end.why == SESSION_ENDED) {
		ret->how = AN_CUT_TARGET;
		describe_end(who, child, ret->why, size);
	} else {
		session_describe(&facts->end, ret->why, size);
	}
	log_error(begun ? "the trace of process %" PRId32 " (%s) is incomplete: %s"
			: "nothing was recorded of process %" PRId32 " (%s): %s",
		  who->pid, who->name, ret->why);
	if (*hold.advice)
		log_advice("%s", hold.advice);
	else if (facts->end.why == SESSION_SILENT && who->target && !who->target->foreign)
		log_advice("'drdotnet-trace process resume -p %" PRId32 "' lets it go on",
			   who->pid);
}

/* The exit code that the stream alone would give. */
static int judge_stream(const struct collect_subject *who, const struct collect_facts *facts,
			const struct analysis_child *child, struct nt_decoder *d, struct cut *cut)
{
	const struct nt_stats *stats = nt_decoder_borrow_stats(d);
	enum nt_status st = nt_decoder_finish(d);

	if (st == NT_OK && stats->ended) {
		/* Nobody asked it to stop, and it said its end: it was shut down in an orderly way.
		 */
		if (!facts->stop_ns && !child)
			log_warn("process %" PRId32 " (%s) ended by itself after %.1f s; the trace "
				 "is complete up to its end",
				 who->pid, who->name,
				 (double)(facts->end_ns - facts->start_ns) / 1e9);
		return EXIT_DONE;
	}
	if (st == NT_ETRUNC) {
		bool begun = nt_decoder_borrow_trace(d) != NULL;

		say_why_cut(who, facts, child, begun, cut);
		return begun ? EXIT_PARTIAL : EXIT_FAILED;
	}
	return analysis_fault(d, facts->path);
}

/* --- the report --- */

/* The session's providers as analyzers know them; the caller frees it. */
static struct an_provider *enabled_providers(const struct ipc_collect *session,
					     bool without_sampler)
{
	struct an_provider *list = calloc(session->provider_count + 1, sizeof(*list));

	for (size_t i = 0, n = 0; list && i < session->provider_count; i++) {
		if (without_sampler && !strcasecmp(session->providers[i].name, PROVIDER_SAMPLER))
			continue;
		list[n++] = (struct an_provider){
			.name = session->providers[i].name,
			.keywords = session->providers[i].keywords,
			/* Where some were filtered out, that none came proves nothing. */
			.level = session->providers[i].filter ? 0 : session->providers[i].level,
		};
	}
	return list;
}

static int print_report(const struct collect_settings *s, const struct collect_facts *facts,
			struct analysis *a, const struct analysis_child *child,
			struct out *take_report)
{
	struct an_provider *enabled;
	int code;

	if (!take_report && !s->outcome && fail_if_is_empty(s->conditions))
		return EXIT_DONE;
	enabled = enabled_providers(&s->session, facts->without_sampler);
	analysis_set_enabled(a, enabled);
	if (facts->path && facts->written.file.error)
		analysis_set_file_cut(a, strerror(facts->written.file.error));
	else if (facts->path && facts->written.file.dropped)
		analysis_set_file_cut(a, "the disk was too slow");
	code = analysis_print(a, take_report, s->format, facts->path, child);
	analysis_set_enabled(a, NULL);
	free(enabled);
	if (take_report && code != EXIT_FAILED)
		return out_close(take_report, code);
	if (take_report)
		out_discard(take_report);
	return code;
}

/* --- for those who want more than the report --- */

struct seen {
	const struct collect_settings *settings;
	struct collect_outcome outcome;
	bool told;
};

static void tell(struct seen *seen)
{
	if (!seen->told && seen->settings->outcome)
		seen->settings->outcome(seen->settings->outcome_ctx, &seen->outcome);
	seen->told = true;
}

static void on_report(void *ctx, const struct an_value *root)
{
	struct seen *seen = ctx;

	seen->outcome.report = root;
	tell(seen);
	seen->outcome.report = NULL;
}

/*
 * As long as the report has it: a session begins before the runtime has answered, by up to half a
 * second in a program that was never traced before, and its stop takes a while to arrive.
 */
static void format_recorded(const struct collect_facts *facts, int64_t observed_ns, char *buf,
			    size_t size)
{
	uint64_t stop = facts->stop_ns ? facts->stop_ns : facts->end_ns;
	double seconds = (double)(stop - facts->start_ns) / 1e9;
	double observed = (double)observed_ns / 1e9;

	if (observed_ns <= 0 || (observed - seconds < 0.1 && seconds - observed < 0.1))
		snprintf(buf, size, "%.1f s", seconds);
	else
		snprintf(buf, size, "%.1f s (%.1f s from its answer to %s)", observed, seconds,
			 facts->stop_ns ? "our stop" : "its end");
}

static void say_summary(const struct collect_settings *s, const struct collect_facts *facts,
			const struct analysis *a, const struct nt_decoder *d)
{
	const struct nt_stats *stats = nt_decoder_borrow_stats(d);
	char bytes[32], recorded[96], rundown[64] = ""; /* there is none unless we stop it */

	if (s->quiet)
		return;
	format_recorded(facts, analysis_observed_ns(a), recorded, sizeof(recorded));
	if (facts->stop_ns)
		snprintf(rundown, sizeof(rundown), ", then %.1f s %s",
			 (double)(facts->end_ns - facts->stop_ns) / 1e9,
			 facts->end.why == SESSION_ENDED && !facts->forced
				 ? "until the end of the rundown"
				 : "that did not bring the rundown to its end");
	log_info("recorded %s%s; %s, %" PRIu64 " events, %" PRIu64 " lost", recorded, rundown,
		 collect_format_bytes(stats->bytes, bytes, sizeof(bytes)), stats->events,
		 stats->lost);
}

static void say_pieces(const struct collect_settings *s, const struct collect_facts *facts)
{
	const struct collect_pieces_result *w = &facts->written;

	if (w->unnamed)
		log_warn("%" PRIu64 " methods and modules have no names in the pieces: there was "
			 "no room for them",
			 w->unnamed);
	if (s->keep && w->pieces && !s->quiet)
		log_info("%" PRIu64 " pieces, of which the last %" PRIu64 " are kept", w->pieces,
			 w->pieces - w->removed);
}

/* The file's own trouble.  What was written is valid. */
static int judge_file(const struct collect_facts *facts)
{
	char bytes[32];

	if (facts->written.file.error == 0 && !facts->written.file.dropped)
		return EXIT_DONE;
	if (facts->written.file.error == 0)
		log_error("the file is incomplete: the disk was too slow");
	log_advice("the file holds the first %s of the stream",
		   collect_format_bytes(facts->written.file.stream_bytes, bytes, sizeof(bytes)));
	return EXIT_PARTIAL;
}

int collect_conclude(const struct collect_settings *s, const struct collect_subject *who,
		     const struct collect_facts *facts, struct analysis *a,
		     const struct analysis_child *child, struct out *take_report)
{
	struct nt_decoder *d = analysis_decoder(a);
	uint64_t stop = facts->stop_ns ? facts->stop_ns : facts->end_ns;
	struct seen seen = { .settings = s, .outcome = { .who = who } };
	struct cut cut = { .why = "" };
	int code, file_code, report_code = EXIT_DONE;

	if (!facts->started) {
		if (take_report)
			out_discard(take_report);
		seen.outcome.code = refuse(who, &facts->end);
		tell(&seen);
		return seen.outcome.code;
	}
	code = judge_stream(who, facts, child, d, &cut);
	if (*cut.why)
		analysis_set_cut(a, cut.how, cut.why);
	file_code = judge_file(facts);
	seen.outcome.path = facts->path;
	seen.outcome.file_bytes = facts->written.file.file_bytes;
	seen.outcome.duration_ns = stop - facts->start_ns;
	seen.outcome.code = code != EXIT_DONE ? code : file_code;
	if (s->outcome)
		analysis_see(a, on_report, &seen);
	if (code != EXIT_FAILED)
		report_code = print_report(s, facts, a, child, take_report);
	else if (take_report)
		out_discard(take_report);
	tell(&seen);
	say_summary(s, facts, a, d);
	say_pieces(s, facts);
	if (s->stop_event && !facts->stop_event_came)
		log_info("the stopping event did not come; 'events --count' lists what did");
	if (facts->path && !s->outcome)
		log_info("%s", facts->path);
	if (report_code != EXIT_DONE)
		return report_code;
	if (code == EXIT_DONE && facts->heap_failed)
		code = EXIT_PARTIAL;
	return code != EXIT_DONE ? code : file_code;
}
