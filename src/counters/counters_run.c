/* SPDX-License-Identifier: MIT */
#include "src/counters/counters_run.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "analyzers/textset.h"
#include "nettrace/idmap.h"
#include "src/base/command.h"
#include "src/base/log.h"

enum { MAX_SERIES = 20000, MAX_TWINS = 16 };

struct series {
	int64_t last_ns;
	uint64_t collection; /* of its last reading */
};

struct counters_run {
	struct counters_run_config config;
	struct counter_row row; /* of the event at hand */
	struct series *series;
	size_t count;
	struct nt_idmap by_key;
	uint64_t collection; /* of a meter's readings; 0 before the first */
	int64_t collection_ns, collection_gap_ns, collection_took_ns;
	uint64_t readings, gaps, again, untold, foreign;
	int64_t gap_ns;
	uint64_t series_limit, histogram_limit;
	bool refused, other_interval;
	char refusal[COUNTER_TEXT_BYTES], error[COUNTER_TEXT_BYTES];
};

struct counters_run *counters_run_new(const struct counters_run_config *config)
{
	struct counters_run *r = calloc(1, sizeof(*r));

	if (!r)
		return NULL;
	r->config = *config;
	r->series = calloc(MAX_SERIES, sizeof(*r->series));
	nt_idmap_init(&r->by_key, &nt_alloc_default);
	return r->series ? r : counters_run_free(r);
}

struct counters_run *counters_run_free(struct counters_run *r)
{
	if (!r)
		return NULL;
	nt_idmap_done(&r->by_key);
	free(r->series);
	free(r);
	return NULL;
}

/* --- time --- */

/* What is beyond half an interval is a hole, not a timer that came late. */
static int64_t gap_of(int64_t passed_ns, int64_t interval_ns)
{
	return passed_ns > interval_ns + interval_ns / 2 ? passed_ns - interval_ns : 0;
}

static void on_collection(struct counters_run *r)
{
	int64_t at = r->row.time_ns;

	r->collection_gap_ns = 0;
	r->collection_took_ns = r->config.refresh_ns;
	if (r->collection && at > r->collection_ns) {
		r->collection_took_ns = at - r->collection_ns;
		r->collection_gap_ns = gap_of(r->collection_took_ns, r->config.refresh_ns);
	}
	r->collection++;
	r->collection_ns = at;
	if (r->collection_gap_ns) {
		r->gaps++;
		r->gap_ns += r->collection_gap_ns;
	}
}

/* "Interval=1000": the timer that all listeners of an event source share. */
static int64_t series_interval_ns(struct counters_run *r)
{
	const char *text = r->row.session, *end = text + strlen("Interval=");
	unsigned long ms = 0;

	if (strncmp(text, "Interval=", strlen("Interval=")) == 0)
		ms = strtoul(end, NULL, 10);
	if (!ms || ms > 86400000)
		return r->config.refresh_ns;
	if ((int64_t)ms * 1000000 != r->config.refresh_ns)
		r->other_interval = true;
	return (int64_t)ms * 1000000;
}

/* --- series --- */

/* NULL: there are too many to know them all, or no memory. */
static struct series *find(struct counters_run *r, uint32_t twin, bool *ret_new)
{
	const struct counter_row *row = &r->row;
	const char *texts[] = { row->provider, row->version, row->name, row->tags };
	uint64_t key = (uint64_t)row->instrument << 32 | (uint64_t)row->kind << 8 | twin;
	uint32_t at;

	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
		key = an_hash(texts[i], strlen(texts[i]) + 1, key);
	at = nt_idmap_get(&r->by_key, key);
	*ret_new = at == NT_IDMAP_NONE;
	if (!*ret_new)
		return &r->series[at];
	if (r->count == MAX_SERIES || nt_idmap_put(&r->by_key, key, (uint32_t)r->count) < 0)
		return NULL;
	return &r->series[r->count++];
}

/*
 * Notes a reading; false when it is one that there was already.  Runtimes that send no ids of
 * instruments have a second one of the same name and tags in one collection: its twin.
 */
static bool note(struct counters_run *r, struct counters_reading *ret)
{
	const struct counter_row *row = &r->row;
	bool meter = counter_is_meter(row->kind), new = false;
	struct series *s = NULL;

	for (ret->twin = 0; ret->twin < MAX_TWINS; ret->twin++) {
		s = find(r, ret->twin, &new);
		if (!s || new || !meter || row->instrument || s->collection != r->collection)
			break;
	}
	if (!s || ret->twin == MAX_TWINS) {
		r->untold++;
		return true;
	}
	if (!new && row->time_ns <= s->last_ns) {
		r->again++;
		return false;
	}
	if (meter) {
		ret->gap_ns = r->collection_gap_ns;
	} else if (!new) {
		ret->gap_ns = gap_of(row->time_ns - s->last_ns, series_interval_ns(r));
		r->gaps += ret->gap_ns > 0;
		r->gap_ns += ret->gap_ns;
	}
	s->last_ns = row->time_ns;
	s->collection = r->collection;
	return true;
}

static enum nt_status on_reading(struct counters_run *r, const struct nt_trace_info *info)
{
	struct counters_entry *e = counters_list_find(r->config.list, &r->row);
	struct counters_reading reading = { .row = &r->row };

	if (!e)
		return NT_OK;
	if (info && info->wall_clock_known)
		reading.start_unix_ns = info->start_unix_ns;
	reading.interval_s =
		(double)(r->collection ? r->collection_took_ns : r->config.refresh_ns) / 1e9;
	if (!note(r, &reading))
		return NT_OK;
	e->seen = true;
	r->readings++;
	return r->config.put(r->config.ctx, &reading) ? NT_OK : NT_STOPPED;
}

/* --- events --- */

static bool is_ours(const struct counters_run *r)
{
	return !*r->row.session || strcmp(r->row.session, COUNTERS_SESSION) == 0;
}

static void keep_text(char *to, const struct counter_row *row)
{
	if (!*to)
		memcpy(to, row->text, sizeof(row->text));
}

enum nt_status counters_run_event(void *run, const struct nt_trace_info *info,
				  const struct nt_event *ev)
{
	struct counters_run *r = run;
	enum counter_event what = counter_event_read(ev, &r->row);

	if (what != COUNTER_EVENT_REFUSED && counter_is_meter(r->row.kind) && !is_ours(r)) {
		r->foreign += what == COUNTER_EVENT_READING;
		return NT_OK;
	}
	switch (what) {
	case COUNTER_EVENT_READING:
		return on_reading(r, info);
	case COUNTER_EVENT_INSTRUMENT:
		counters_list_has_meter(r->config.list, r->row.provider);
		break;
	case COUNTER_EVENT_COLLECTION:
		on_collection(r);
		break;
	case COUNTER_EVENT_SERIES_LIMIT:
		r->series_limit++;
		break;
	case COUNTER_EVENT_HISTOGRAM_LIMIT:
		r->histogram_limit++;
		break;
	case COUNTER_EVENT_CALLBACK_ERROR:
	case COUNTER_EVENT_ERROR:
		keep_text(r->error, &r->row);
		break;
	case COUNTER_EVENT_REFUSED:
		r->refused = true;
		break;
	case COUNTER_EVENT_EARLY:
	case COUNTER_EVENT_UNREADABLE:
	case COUNTER_EVENT_OTHER:
		break;
	}
	return NT_OK;
}

/* --- the end --- */

static void say_unseen(const struct counters_run *r)
{
	for (size_t i = 0; i < r->config.list->count; i++) {
		const struct counters_entry *e = &r->config.list->items[i];

		if (!e->seen)
			log_warn("no reading of '%s' came: the program has none of that name, or "
				 "has not used it yet",
				 e->provider);
	}
}

static void say_limits(const struct counters_run *r)
{
	if (r->series_limit)
		log_warn("the runtime left out time series: --max-time-series is too small");
	if (r->histogram_limit)
		log_warn("the runtime left out histograms: --max-histograms is too small");
	if (*r->error)
		log_warn("the runtime reports: %s", r->error);
	if (r->untold)
		log_warn("%" PRIu64 " readings are of series beyond the %d that are told apart",
			 r->untold, MAX_SERIES);
	if (r->again)
		log_warn("%" PRIu64 " readings came twice and were left out", r->again);
	if (r->other_interval)
		log_warn("somebody else reads these EventCounters at another interval: all share "
			 "the shorter one, and may stay without readings when one of them leaves");
}

int counters_run_end(const struct counters_run *r, bool quiet, int code)
{
	say_limits(r);
	if (r->refused) {
		log_error(
			"the meters cannot be read: another tool reads them, with other settings");
		log_advice("stop it, or choose its interval and limits");
		code = code == EXIT_DONE ? EXIT_PARTIAL : code;
	}
	if (code == EXIT_UNREACHABLE || code == EXIT_USAGE)
		return code;
	if (!r->readings) {
		log_error("no reading came");
		return code == EXIT_DONE || code == EXIT_PARTIAL ? EXIT_FAILED : code;
	}
	say_unseen(r);
	if (r->gaps && !quiet)
		log_info("%" PRIu64 " gaps of %.1f s in all: the process did not answer then",
			 r->gaps, (double)r->gap_ns / 1e9);
	if (!quiet)
		log_info("%" PRIu64 " readings of %zu series", r->readings, r->count);
	return code;
}
