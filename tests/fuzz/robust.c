/* SPDX-License-Identifier: MIT */

/*
 * robust MODE FILE...: damages traces in every way that can be listed and sees that the decoder and
 * the analyzers survive: no crash, no hang, bounded memory, nothing leaked, and an error that says
 * where.  $DRD_LONG=1 leaves no step out; otherwise a sample is taken.
 *
 *	prefixes     every length of a small trace
 *	edges        cuts around the edges of all blocks, and in the last 4 KiB
 *	mutations    10,000 seeded random changes
 *	lengths      hostile numbers at every place of a small trace, at every block of a larger one
 *	chunks       one byte at a time, and other sizes, give the same as the whole
 *	allocations  each single allocation fails once
 */

#include "tests/fuzz/robust.h"

#include <inttypes.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/support/failalloc.h"
#include "tests/support/fixture.h"
#include "tests/support/probe.h"
#include "tests/support/walk.h"

enum {
	MAX_SECONDS = 5, /* of processor time, of one case: other programs may keep us waiting */
	MAX_PEAK = 48 << 20, /* bytes that one decoder may hold */
	MAX_FAULTS = 20, /* printed, then it stops */
	SMALL = 100000, /* bytes; below this every prefix is tried */
};

static char now_doing[256]; /* the case, for a crash or a hang */
static unsigned faults;
static uint64_t cases;
static bool take_all;

__attribute__((format(printf, 1, 2))) static void fault(const char *fmt, ...)
{
	va_list ap;

	printf("%s: ", now_doing);
	va_start(ap, fmt);
	vprintf(fmt, ap);
	va_end(ap);
	putchar('\n');
	if (++faults == MAX_FAULTS) {
		fflush(stdout);
		_exit(1);
	}
}

static void on_signal(int sig)
{
	static const char hang[] = ": takes too long\n", crash[] = ": crash\n";

	(void)!write(2, now_doing, strlen(now_doing));
	if (sig == SIGPROF)
		(void)!write(2, hang, sizeof(hang) - 1);
	else
		(void)!write(2, crash, sizeof(crash) - 1);
	signal(sig, SIG_DFL);
	raise(sig);
}

static void limit_time(int seconds)
{
	const struct itimerval limit = { .it_value.tv_sec = seconds };

	setitimer(ITIMER_PROF, &limit, NULL);
}

__attribute__((format(printf, 1, 2))) static void begin_case(const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(now_doing, sizeof(now_doing), fmt, ap);
	va_end(ap);
	cases++;
	limit_time(MAX_SECONDS);
}

/* An error must say what and where; success must not. */
static void check_error(enum nt_status st, const struct nt_error *err, size_t size)
{
	char text[512];

	if (st == NT_OK) {
		if (err->code != NT_OK)
			fault("success with an error: %s", err->what);
		return;
	}
	if (st != NT_EFORMAT && st != NT_ETRUNC && st != NT_ELIMIT && st != NT_EVERSION)
		fault("status %s", nt_status_name(st));
	if (err->code != st || !err->what || !err->block)
		fault("%s without its error", nt_status_name(st));
	else if (err->offset > size || err->block_offset > err->offset)
		fault("error at byte %" PRIu64 " of %zu, block at %" PRIu64, err->offset, size,
		      err->block_offset);
	else if (nt_error_format(err, text, sizeof(text)) <= 0)
		fault("the error has no text");
}

static void check_memory(const struct failalloc *fa)
{
	if (fa->live)
		fault("%zu blocks leaked", fa->live);
	if (fa->peak_bytes > MAX_PEAK)
		fault("%zu bytes held", fa->peak_bytes);
}

/* Decodes and reports the bytes as they are now. */
static void check(const uint8_t *data, size_t size, size_t chunk)
{
	struct nt_error err;
	struct failalloc fa;
	struct probe p;
	enum nt_status st, again;

	failalloc_init(&fa, 0);
	st = probe_decode(&fa.alloc, NULL, NT_TIME_ORDER, data, size, chunk, &p, &err);
	check_error(st, &err, size);
	check_memory(&fa);
	failalloc_init(&fa, 0);
	again = robust_report(&fa.alloc, data, size);
	if (again != st)
		fault("decoding says %s, reporting %s", nt_status_name(st), nt_status_name(again));
	check_memory(&fa);
}

static void prefixes(const char *name, const uint8_t *data, size_t size)
{
	size_t step = take_all || size < 1000 ? 1 : 31;

	if (size > SMALL)
		return;
	for (size_t n = 0; n < size; n += step) {
		begin_case("%s: first %zu bytes", name, n);
		check(data, n, 0);
	}
}

/* In a child, so that the parent's decoder goes on as if nothing had happened. */
static void finish_in_child(struct nt_decoder *d, size_t size)
{
	pid_t child;
	int status;

	fflush(stdout);
	child = fork();
	if (child < 0) {
		fault("cannot fork");
		return;
	}
	if (child == 0) {
		unsigned before = faults;
		enum nt_status st;

		limit_time(MAX_SECONDS);
		st = nt_decoder_finish(d);
		if (st == NT_OK && size > 0)
			fault("a cut trace is a success");
		else
			check_error(st, nt_decoder_borrow_error(d), size);
		fflush(stdout);
		_exit(faults == before ? 0 : 1);
	}
	if (waitpid(child, &status, 0) != child || status != 0) {
		fault("the child ended with status %x", (unsigned)status);
	}
}

/* Whether a trace is cut at n: near an edge, or in its last 4 KiB; fewer places when sampling. */
static bool is_cut(const size_t *edges, size_t count, size_t *next, size_t n, size_t size)
{
	/* Each cut is a fork, which a sanitizer makes dear. */
	size_t step = take_all ? 1 : robust_sanitized() ? 32 : 13;
	size_t tail_step = take_all ? 1 : robust_sanitized() ? 389 : 97;

	while (*next < count && edges[*next] + 32 < n)
		(*next)++;
	if (size - n <= 4096 && (size - n) % tail_step == 0)
		return true;
	return *next < count && n + 32 >= edges[*next] && (edges[*next] + 32 - n) % step == 0;
}

static void edges(const char *name, const uint8_t *data, size_t size)
{
	struct probe p = { 0 };
	struct nt_decoder *d = nt_decoder_new(NULL, NULL, NT_TIME_ORDER, &probe_sink, &p);
	size_t count, next = 0, fed = 0, *at = walk_edges(data, size, &count);

	begin_case("%s: edges", name);
	if (!d || count < 3)
		fault("no blocks found");
	for (size_t n = 1; d && n < size; n++) {
		if (!is_cut(at, count, &next, n, size))
			continue;
		begin_case("%s: cut at %zu", name, n);
		if (nt_decoder_push(d, data + fed, n - fed) != NT_OK) {
			fault("a sound trace is damaged: %s", nt_decoder_borrow_error(d)->what);
			break;
		}
		fed = n;
		finish_in_child(d, n);
	}
	nt_decoder_free(d);
	free(at);
}

static void mutations(const char *name, const uint8_t *data, size_t size)
{
	size_t want = robust_sanitized() && !take_all ? 1000 : 10000;
	uint8_t *small = NULL, *copy;

	if (size > SMALL) /* a sound, shorter trace: damage is denser there */
		data = small = robust_shorten(data, size, SMALL, &size);
	copy = malloc(2 * size + 64);
	if (!copy)
		abort();
	for (size_t seed = 1; seed <= want; seed++) {
		/* Most seeds damage the first blocks only, which keeps the run short. */
		size_t n = size > 20000 && seed % 10 ? 20000 : size;

		memcpy(copy, data, n);
		begin_case("%s: mutation %zu of the first %zu bytes", name, seed, n);
		n = robust_mutate(copy, n, seed);
		check(copy, n, seed % 5 ? 0 : 1 + seed % 200);
	}
	free(copy);
	free(small);
}

/* Puts each hostile number at place at, in each width. */
static void lengths_at(const char *name, uint8_t *copy, size_t size, size_t at)
{
	static const uint64_t hostile[] = {
		UINT64_MAX,
		0x8000000000000000,
		0x7fffffffffffffff,
		0x80000000ffffffff,
		0x7fffffff,
		0x80000000,
		0x100000000,
		0x10000,
		0xfffe,
		0,
	};
	uint8_t old[8];

	for (size_t width = 1; width <= 8; width *= 2) {
		if (width > size - at)
			continue;
		memcpy(old, copy + at, width);
		for (size_t i = 0; i < sizeof(hostile) / sizeof(*hostile); i++) {
			memcpy(copy + at, &hostile[i], width);
			begin_case("%s: %zu bytes of %" PRIx64 " at %zu", name, width, hostile[i],
				   at);
			check(copy, size, 0);
		}
		memcpy(copy + at, old, width);
	}
}

static void lengths(const char *name, const uint8_t *data, size_t size)
{
	size_t count, *at, step = take_all ? 1 : robust_sanitized() ? 11 : 5;
	uint8_t *copy = malloc(size);

	if (!copy)
		abort();
	memcpy(copy, data, size);
	if (size < 1000) {
		for (size_t i = 0; i < size; i++)
			lengths_at(name, copy, size, i);
	} else if (take_all || size < SMALL) {
		at = walk_edges(data, size, &count);
		for (size_t i = 0; i + 1 < count; i += take_all ? 1 : count / 4 + 1) {
			for (size_t n = 0; n < 64 && at[i] + n < size; n += step)
				lengths_at(name, copy, size, at[i] + n);
		}
		free(at);
	}
	free(copy);
}

static void chunks(const char *name, const uint8_t *data, size_t size)
{
	static const size_t sizes[] = { 1, 7, 4096, 102400 };
	struct probe whole, part;
	struct nt_error err;
	enum nt_status want, st;

	begin_case("%s: whole", name);
	want = probe_decode(NULL, NULL, NT_TIME_ORDER, data, size, 0, &whole, &err);
	if (want != NT_OK || whole.events == 0)
		fault("%s, %" PRIu64 " events", nt_status_name(want), whole.events);
	if (whole.backwards)
		fault("%" PRIu64 " events go back in time", whole.backwards);
	for (size_t i = 0; i < sizeof(sizes) / sizeof(*sizes); i++) {
		begin_case("%s: chunks of %zu", name, sizes[i]);
		limit_time(12 * MAX_SECONDS); /* one byte at a time is slow under a sanitizer */
		st = probe_decode(NULL, NULL, NT_TIME_ORDER, data, size, sizes[i], &part, &err);
		if (st != want || part.hash != whole.hash)
			fault("%s, %" PRIu64 " events, not as the whole", nt_status_name(st),
			      part.events);
	}
}

static void allocations(const char *name, const uint8_t *data, size_t size)
{
	struct nt_error err;
	struct failalloc fa;
	struct probe p;
	enum nt_status st;
	uint8_t *small = NULL;
	bool failed = true;

	if (size > SMALL)
		data = small = robust_shorten(data, size, SMALL, &size);
	for (size_t n = 1; failed; n++) {
		begin_case("%s: allocation %zu fails while decoding", name, n);
		failalloc_init(&fa, n);
		st = probe_decode(&fa.alloc, NULL, NT_TIME_ORDER, data, size, 4096, &p, &err);
		failed = fa.failed;
		if (st != (failed ? NT_ENOMEM : NT_OK))
			fault("%s", nt_status_name(st));
		check_memory(&fa);
	}
	failed = true;
	for (size_t n = 1; failed; n += take_all ? 1 : 1 + n / 20) {
		begin_case("%s: allocation %zu fails while reporting", name, n);
		failalloc_init(&fa, n);
		st = robust_report(&fa.alloc, data, size);
		failed = fa.failed;
		if (st != (failed ? NT_ENOMEM : NT_OK))
			fault("%s", nt_status_name(st));
		check_memory(&fa);
	}
	free(small);
}

static const struct mode {
	const char *name;
	void (*run)(const char *name, const uint8_t *data, size_t size);
} modes[] = {
	{ "prefixes", prefixes }, { "edges", edges },	{ "mutations", mutations },
	{ "lengths", lengths },	  { "chunks", chunks }, { "allocations", allocations },
};

int main(int argc, char **argv)
{
	const struct mode *mode = NULL;
	const char *long_form = getenv("DRD_LONG");

	take_all = long_form && strcmp(long_form, "1") == 0;
	for (size_t i = 0; argc > 2 && i < sizeof(modes) / sizeof(*modes); i++) {
		if (strcmp(argv[1], modes[i].name) == 0)
			mode = &modes[i];
	}
	if (!mode) {
		fputs("usage: robust prefixes|edges|mutations|lengths|chunks|allocations FILE...\n",
		      stderr);
		return 2;
	}
	signal(SIGPROF, on_signal);
	signal(SIGABRT, on_signal);
	signal(SIGSEGV, on_signal);
	for (int i = 2; i < argc; i++) {
		size_t size;
		uint8_t *data = fixture_read(argv[i], &size);

		if (!data)
			return 1;
		mode->run(argv[i], data, size);
		free(data);
	}
	limit_time(0);
	printf("%" PRIu64 " cases, %u faults\n", cases, faults);
	return faults || cases == 0 ? 1 : 0;
}
