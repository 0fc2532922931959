/* SPDX-License-Identifier: MIT */

/*
 * The table of CPU times in the block behind the end of a trace.  Layout: "The trailing block" in
 * nettrace/README.md.
 *
 * Windows come before the threads that refer to them.  What is loaded is added to the table as if
 * it had been measured, so the same limits hold; windows may become fewer while it is read.
 */

#include <string.h>

#include "analyzers/cpu/cputime_internal.h"

/* --- writing --- */

static void save_info(const struct an_cputime *t, struct nt_trailer *to)
{
	nt_trailer_begin(to, NT_TRAILER_CPU_INFO);
	nt_trailer_u8(to, (uint8_t)t->info.source);
	nt_trailer_varint(to, t->info.process_id);
	nt_trailer_varuint(to, t->info.process_known ? t->info.process_ns + 1 : 0);
	nt_trailer_varuint(to, t->info.cost_ns);
	nt_trailer_varuint(to, t->forgotten);
	nt_trailer_varuint(to, t->forgotten_ns);
	nt_trailer_varuint(to, t->crowded);
	nt_trailer_end(to);
}

static void save_windows(const struct an_cputime *t, size_t from, size_t to, struct nt_trailer *out)
{
	int64_t at = 0;

	nt_trailer_begin(out, NT_TRAILER_CPU_WINDOWS);
	for (size_t i = from; i < to; i++) {
		const struct cputime_window *w = &t->windows[i];

		nt_trailer_varint(out, w->begin_ns - at);
		nt_trailer_varuint(out, (uint64_t)(w->end_ns - w->begin_ns));
		at = w->end_ns;
	}
	nt_trailer_end(out);
}

/* What it used in windows from..to. */
static void save_thread(const struct an_cputime *t, const struct cputime_thread *th, size_t from,
			size_t to, struct nt_trailer *out)
{
	const struct an_cputime_thread *seen = &th->seen;
	uint32_t last_window = (uint32_t)from;
	uint64_t last_ns = 0;

	nt_trailer_begin(out, NT_TRAILER_THREAD_CPU);
	nt_trailer_varuint(out, seen->thread_id);
	nt_trailer_text(out, seen->name, strlen(seen->name));
	nt_trailer_u8(out, (uint8_t)seen->state);
	nt_trailer_varint(out, seen->first_ns - t->windows[from].begin_ns);
	nt_trailer_varuint(out, (uint64_t)(seen->last_ns - seen->first_ns));
	for (size_t i = 0; i < th->count; i++) {
		const struct cputime_slice *s = &th->slices[i];

		if (s->window < from || s->window >= to)
			continue;
		nt_trailer_varuint(out, s->window - last_window);
		nt_trailer_varint(out, (int64_t)(s->cpu_ns - last_ns));
		nt_trailer_varuint(out, s->ready_us);
		last_window = s->window;
		last_ns = s->cpu_ns;
	}
	nt_trailer_end(out);
}

void an_cputime_save(const struct an_cputime *t, int64_t from_ns, int64_t to_ns,
		     struct nt_trailer *to)
{
	size_t from = 0, end;

	while (from < t->window_count && t->windows[from].end_ns <= from_ns)
		from++;
	end = from;
	while (end < t->window_count && t->windows[end].begin_ns < to_ns)
		end++;
	if (from == end)
		return;
	save_info(t, to);
	save_windows(t, from, end, to);
	for (size_t i = 0; i < t->count; i++) {
		const struct cputime_thread *th = &t->threads[i];

		if (th->used && th->seen.last_ns > from_ns && th->seen.first_ns < to_ns)
			save_thread(t, th, from, end, to);
	}
}

/* --- reading --- */

static bool sane(int64_t time_ns)
{
	return time_ns >= -NT_TIME_MAX_NS && time_ns <= NT_TIME_MAX_NS;
}

static enum nt_status load_info(struct an_cputime *t, struct nt_span s)
{
	struct an_cputime_info info = { 0 };
	uint64_t process, forgotten, forgotten_ns, crowded;

	info.source = (enum an_cputime_source)nt_u8(&s);
	info.process_id = nt_varint64(&s);
	process = nt_varuint64(&s);
	info.cost_ns = nt_varuint64(&s);
	forgotten = nt_varuint64(&s);
	forgotten_ns = nt_varuint64(&s);
	crowded = nt_varuint64(&s);
	if (s.bad)
		return NT_EFORMAT;
	info.process_known = process > 0;
	info.process_ns = process > 0 ? process - 1 : 0;
	if (info.source > AN_CPUTIME_PERF)
		info.source = AN_CPUTIME_UNKNOWN; /* of a later version */
	t->info = info;
	t->forgotten = forgotten;
	t->forgotten_ns = forgotten_ns;
	t->crowded = crowded;
	return NT_OK;
}

/* The next of the record's windows, behind *at; false: it makes no sense. */
static bool next_window(struct nt_span *s, int64_t *at, struct cputime_window *ret)
{
	int64_t gap = nt_varint64(s);
	uint64_t length = nt_varuint64(s);

	if (s->bad || !sane(gap) || length == 0 || length > (uint64_t)NT_TIME_MAX_NS)
		return false;
	ret->begin_ns = *at + gap; /* both are sane: no overflow */
	ret->end_ns = ret->begin_ns + (int64_t)length;
	*at = ret->end_ns;
	return sane(ret->begin_ns) && sane(ret->end_ns);
}

static size_t count_windows(struct nt_span s)
{
	struct cputime_window w;
	int64_t at = 0;
	size_t n = 0;

	while (nt_left(&s) > 0 && next_window(&s, &at, &w))
		n++;
	return n;
}

/* More than there is room for are taken together, evenly. */
static enum nt_status load_windows(struct an_cputime *t, struct nt_span s)
{
	size_t count = count_windows(s), read = 0;
	uint32_t shift = 0;
	int64_t at = 0;

	if (t->loaded || t->window_count > 0)
		return NT_EFORMAT;
	while (count >> shift >= t->max_windows)
		shift++;
	t->loaded = true;
	t->file_shift = shift;
	t->file_merged = t->merged;
	while (nt_left(&s) > 0) {
		struct cputime_window w;
		enum nt_status st;

		if (!next_window(&s, &at, &w) || w.begin_ns < an_cputime_until(t))
			return NT_EFORMAT;
		if (read > 0 && read >> shift == (read - 1) >> shift) {
			t->windows[t->window_count - 1].end_ns = w.end_ns;
		} else {
			st = an_cputime_window(t, w.begin_ns, w.end_ns);
			if (st < 0)
				return st;
		}
		t->file_windows = ++read;
	}
	return NT_OK;
}

static enum nt_status load_slices(struct an_cputime *t, uint32_t index, struct nt_span *s)
{
	uint64_t window = 0, cpu_ns = 0;

	while (nt_left(s) > 0) {
		struct cputime_thread *th = &t->threads[index];
		struct cputime_slice slice;
		uint64_t step = nt_varuint64(s);
		uint64_t change = (uint64_t)nt_varint64(s);
		uint64_t ready = nt_varuint64(s);
		uint64_t shift;
		enum nt_status st;

		cpu_ns += change;
		if (s->bad || step > t->file_windows || window + step >= t->file_windows ||
		    cpu_ns > (uint64_t)NT_TIME_MAX_NS || ready > UINT32_MAX ||
		    th->seen.cpu_ns + cpu_ns > (uint64_t)NT_TIME_MAX_NS)
			return NT_EFORMAT;
		window += step;
		while (t->slices >= t->max_slices && t->window_count > 1)
			cputime_merge(t);
		shift = t->file_shift + (t->merged - t->file_merged);
		slice = (struct cputime_slice){ cpu_ns, (uint32_t)ready,
						shift < 64 ? (uint32_t)(window >> shift) : 0 };
		st = cputime_add_slice(t, th, &slice);
		if (st < 0)
			return st;
	}
	return NT_OK;
}

static enum nt_status load_thread(struct an_cputime *t, struct nt_span s)
{
	uint64_t id = nt_varuint64(&s);
	struct nt_span name = nt_trailer_take_text(&s);
	char text[AN_CPUTIME_NAME] = "";
	char state = (char)nt_u8(&s);
	int64_t first = nt_varint64(&s);
	uint64_t length = nt_varuint64(&s);
	size_t n = nt_left(&name);
	uint32_t index;
	enum nt_status st;

	if (s.bad || !t->window_count || !sane(first) || length > (uint64_t)NT_TIME_MAX_NS)
		return NT_EFORMAT;
	first += t->windows[0].begin_ns;
	if (!sane(first) || !sane(first + (int64_t)length))
		return NT_EFORMAT;
	st = an_cputime_begin(t, id, first, &index);
	if (st < 0 || index == AN_CPUTIME_NONE)
		return st;
	if (n >= sizeof(text))
		n = sizeof(text) - 1;
	if (n > 0)
		memcpy(text, name.cur, n);
	an_cputime_look(t, index, text, state);
	t->threads[index].seen.last_ns = first + (int64_t)length;
	st = load_slices(t, index, &s);
	an_cputime_end(t, index);
	return st;
}

enum nt_status an_cputime_load(struct an_cputime *t, const struct nt_trailer_record *r)
{
	switch (r->kind) {
	case NT_TRAILER_CPU_INFO:
		return load_info(t, r->body);
	case NT_TRAILER_CPU_WINDOWS:
		return load_windows(t, r->body);
	case NT_TRAILER_THREAD_CPU:
		return load_thread(t, r->body);
	default:
		return NT_OK;
	}
}
