/* SPDX-License-Identifier: MIT */

/*
 * What was measured outside the process: the block behind the end of a trace, as it comes and with
 * its frame made good, and the texts of /proc it is made of.
 *
 * First byte: bit 0, the rest is texts of /proc; bit 1, the rest is records, and the frame is ours.
 */

#include "tests/fuzz/fuzz.h"

#include <stdlib.h>
#include <string.h>

#include "analyzers/cpu/cputime.h"
#include "nettrace/trailer.h"
#include "src/proc/proc_cpu.h"

static void read_texts(const char *text, size_t size)
{
	struct proc_cpu_stat stat;
	uint64_t v[3];

	(void)!proc_cpu_parse_schedstat(text, size, v);
	if (proc_cpu_parse_stat(text, size, &stat) && strlen(stat.name) >= sizeof(stat.name))
		abort();
}

/* Whatever was loaded can be asked for. */
static void use_table(const struct an_cputime *t)
{
	const struct an_cputime_thread *th;
	int64_t since = an_cputime_since(t), until = an_cputime_until(t);

	for (size_t i = 0; (th = an_cputime_borrow(t, i)); i++) {
		int64_t all = an_cputime_used(t, th->thread_id, th->first_ns, th->last_ns);

		if (all < -1 || strlen(th->name) >= sizeof(th->name))
			abort();
		(void)!an_cputime_used(t, th->thread_id, since, until);
		(void)!an_cputime_used(t, th->thread_id, INT64_MIN, INT64_MAX);
	}
}

static bool load(struct nt_span records, struct an_cputime *t)
{
	struct nt_trailer_record r;

	while (nt_trailer_next(&records, &r))
		if (an_cputime_load(t, &r) != NT_OK)
			return false;
	return !records.bad;
}

/* And saved, and loaded again, up to the same time. */
static void save_again(const struct an_cputime *t)
{
	struct an_cputime *again = an_cputime_new(&nt_alloc_default);
	struct nt_trailer out;
	struct nt_span records;
	const uint8_t *block;
	size_t len;

	nt_trailer_init(&out, &nt_alloc_default);
	an_cputime_save(t, INT64_MIN, INT64_MAX, &out);
	if (again && nt_trailer_finish(&out, &block, &len) == NT_OK) {
		if (nt_trailer_open(block, len, &records) || !load(records, again) ||
		    an_cputime_until(again) != an_cputime_until(t))
			abort();
	}
	nt_trailer_done(&out);
	an_cputime_free(again);
}

static void read_records(struct nt_span records)
{
	struct an_cputime *t = an_cputime_new(&nt_alloc_default);
	bool sound = t && load(records, t);

	if (t)
		use_table(t);
	if (sound)
		save_again(t);
	an_cputime_free(t);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	uint8_t *copy = malloc(size ? size : 1); /* of exactly that size, for a sanitizer */
	struct nt_span records;

	if (!copy)
		return 0;
	if (size > 0)
		memcpy(copy, data + 1, size - 1);
	if (size > 0 && data[0] & 1)
		read_texts((const char *)copy, size - 1);
	else if (size > 0 && data[0] & 2)
		read_records(nt_span_of(copy, size - 1));
	else if (size > 0 && !nt_trailer_open(copy, size - 1, &records))
		read_records(records);
	if (size > NT_TRAILER_FOOTER_BYTES)
		(void)!nt_trailer_claimed(copy);
	free(copy);
	return 0;
}
