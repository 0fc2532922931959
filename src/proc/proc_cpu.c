/* SPDX-License-Identifier: MIT */
#include "src/proc/proc_cpu.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "src/proc/proc.h"

enum {
	INTERVAL_MS = 100,
	MAX_INTERVAL_MS = 5000,
	COST_SHARE = 100, /* a reading may take one in so many parts of the time */
	MIN_GAP_MS = 5, /* between two readings that are asked for, */
	ASKED_SHARE = 20, /* and so many times what one takes */
	LOOK_EVERY = 16, /* readings between two looks at a thread's name and state */
	LIST_EVERY = 10, /* readings between two lists of threads, when nothing seems to change */
	FILES_SHARE = 4, /* of the files we may open, one in so many is kept for this */
	MAX_FILES = 2048,
	TEXT_BYTES = 1024,
	MAX_THREADS = 1 << 20,
};

struct thread {
	int32_t tid; /* as we see it */
	int fd; /* of its schedstat or stat; -1: opened for each reading */
	uint32_t index; /* in the table */
	uint64_t cpu_ns, ready_ns; /* as last read */
	uint32_t listed; /* the last list it was in */
	bool gone;
};

struct proc_cpu {
	uv_timer_t timer;
	struct proc_cpu_config config;
	char *root;
	struct an_cputime *table;
	struct an_cputime_info info;
	int dir; /* /proc/PID/task */
	bool real; /* the root is the system's */
	bool translate; /* thread ids differ inside the process */
	bool want_list;
	uint64_t tick_ns;
	clockid_t process_clock;
	uint64_t process_start_ns;
	int64_t clock_offset_ns; /* the process's CLOCK_MONOTONIC minus ours */
	uint64_t last_cost_ns;
	int64_t last_ns; /* of the last reading, our clock */
	struct thread *threads; /* by tid */
	size_t count, cap;
	uint32_t lists, readings;
	struct proc_cpu_stats stats;
};

/* All collections together: what they keep open is not there for traces and sockets. */
static size_t kept_files;

static size_t may_keep(void)
{
	struct rlimit limit;
	size_t n;

	if (getrlimit(RLIMIT_NOFILE, &limit) != 0)
		return 0;
	n = limit.rlim_cur == RLIM_INFINITY ? MAX_FILES : (size_t)limit.rlim_cur / FILES_SHARE;
	return n < MAX_FILES ? n : MAX_FILES;
}

static int64_t now_ns(clockid_t clock)
{
	struct timespec ts;

	if (clock_gettime(clock, &ts) != 0)
		return -1;
	return (int64_t)ts.tv_sec * 1000000000 + ts.tv_nsec;
}

/* --- texts of /proc --- */

static bool next_number(const char **at, const char *end, uint64_t *ret)
{
	uint64_t v = 0;
	const char *p = *at;

	while (p < end && *p == ' ')
		p++;
	if (p == end || *p < '0' || *p > '9')
		return false;
	for (; p < end && *p >= '0' && *p <= '9'; p++)
		if (__builtin_mul_overflow(v, UINT64_C(10), &v) ||
		    __builtin_add_overflow(v, (uint64_t)(*p - '0'), &v))
			return false;
	*at = p;
	*ret = v;
	return true;
}

bool proc_cpu_parse_schedstat(const char *text, size_t len, uint64_t ret[3])
{
	const char *end = text + len;
	uint64_t v[3];

	for (size_t i = 0; i < 3; i++)
		if (!next_number(&text, end, &v[i]))
			return false;
	memcpy(ret, v, sizeof(v));
	return true;
}

/* A name may hold spaces, parentheses and line ends: it ends at the last ')' of all. */
bool proc_cpu_parse_stat(const char *text, size_t len, struct proc_cpu_stat *ret)
{
	enum { BEFORE_UTIME = 10 };
	const char *end = text + len;
	const char *open = memchr(text, '(', len), *close = memrchr(text, ')', len);
	uint64_t user, system;
	size_t n;

	if (!open || !close || close < open || end - close < 4 || close[1] != ' ')
		return false;
	n = (size_t)(close - open - 1);
	if (n >= sizeof(ret->name))
		n = sizeof(ret->name) - 1;
	memcpy(ret->name, open + 1, n);
	ret->name[n] = '\0';
	ret->state = close[2];
	text = close + 3;
	for (int i = 0; i < BEFORE_UTIME; i++) { /* some of them are negative */
		text = text < end ? memchr(text + 1, ' ', (size_t)(end - text - 1)) : NULL;
		if (!text)
			return false;
	}
	if (!next_number(&text, end, &user) || !next_number(&text, end, &system))
		return false;
	return !__builtin_add_overflow(user, system, &ret->ticks);
}

/* --- one thread --- */

static ssize_t read_at(int fd, char *buf, size_t size)
{
	ssize_t n;

	do
		n = pread(fd, buf, size, 0);
	while (n < 0 && errno == EINTR);
	return n;
}

static int open_in(const struct proc_cpu *p, int32_t tid, const char *name)
{
	char path[64];

	snprintf(path, sizeof(path), "%" PRId32 "/%s", tid, name);
	return openat(p->dir, path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
}

/* A whole text of a thread; -1: it is gone, or cannot be read. */
static ssize_t read_text(const struct proc_cpu *p, int32_t tid, const char *name, char *buf,
			 size_t size)
{
	int fd = open_in(p, tid, name);
	ssize_t n = fd < 0 ? -1 : read_at(fd, buf, size);

	if (fd >= 0)
		close(fd);
	return n;
}

static const char *time_file(const struct proc_cpu *p)
{
	return p->info.source == AN_CPUTIME_SCHEDSTAT ? "schedstat" : "stat";
}

static bool parse_times(const struct proc_cpu *p, const char *text, size_t len, uint64_t *ret_cpu,
			uint64_t *ret_ready)
{
	struct proc_cpu_stat stat;
	uint64_t v[3];

	*ret_ready = 0;
	if (p->info.source == AN_CPUTIME_SCHEDSTAT) {
		if (!proc_cpu_parse_schedstat(text, len, v))
			return false;
		*ret_cpu = v[0];
		*ret_ready = v[1];
		return true;
	}
	return proc_cpu_parse_stat(text, len, &stat) &&
	       !__builtin_mul_overflow(stat.ticks, p->tick_ns, ret_cpu);
}

static bool read_times(struct proc_cpu *p, struct thread *t, uint64_t *ret_cpu, uint64_t *ret_ready)
{
	char text[TEXT_BYTES];
	ssize_t n = t->fd >= 0 ? read_at(t->fd, text, sizeof(text))
			       : read_text(p, t->tid, time_file(p), text, sizeof(text));

	return n > 0 && parse_times(p, text, (size_t)n, ret_cpu, ret_ready);
}

/* Its name and state; they matter little, so not every time. */
static void look(struct proc_cpu *p, const struct thread *t)
{
	char text[TEXT_BYTES];
	ssize_t n = read_text(p, t->tid, "stat", text, sizeof(text));
	struct proc_cpu_stat stat;

	if (n > 0 && proc_cpu_parse_stat(text, (size_t)n, &stat))
		an_cputime_look(p->table, t->index, stat.name, stat.state);
}

/* As the process itself, and its trace, has it. */
static uint64_t inner_tid(const struct proc_cpu *p, int32_t tid)
{
	char text[4 * TEXT_BYTES];
	ssize_t n = p->translate ? read_text(p, tid, "status", text, sizeof(text) - 1) : 0;

	text[n > 0 ? n : 0] = '\0';
	return (uint64_t)proc_find_ns_pid(text, tid);
}

static void let_go(struct thread *t)
{
	if (t->fd < 0)
		return;
	close(t->fd);
	t->fd = -1;
	kept_files--;
}

static void keep_open(struct proc_cpu *p, struct thread *t)
{
	if (kept_files >= may_keep())
		return;
	t->fd = open_in(p, t->tid, time_file(p));
	if (t->fd >= 0)
		kept_files++;
}

/* --- the list of them --- */

static int by_tid(const void *a, const void *b)
{
	const struct thread *x = a, *y = b;

	return (x->tid > y->tid) - (x->tid < y->tid);
}

static struct thread *find(struct proc_cpu *p, size_t count, int32_t tid)
{
	const struct thread key = { .tid = tid };

	return count ? bsearch(&key, p->threads, count, sizeof(key), by_tid) : NULL;
}

/* since_ns: it did not live before. */
static void add(struct proc_cpu *p, int32_t tid, int64_t since_ns, bool from_zero)
{
	struct thread t = { .tid = tid, .fd = -1, .listed = p->lists };

	if (p->count == p->cap) {
		size_t cap = p->cap ? p->cap * 2 : 64;
		struct thread *threads = realloc(p->threads, cap * sizeof(*threads));

		if (!threads)
			return;
		p->threads = threads;
		p->cap = cap;
	}
	keep_open(p, &t);
	if (!read_times(p, &t, &t.cpu_ns, &t.ready_ns) ||
	    an_cputime_begin(p->table, inner_tid(p, tid), since_ns + p->clock_offset_ns, &t.index) <
		    0) {
		let_go(&t);
		return;
	}
	if (from_zero)
		t.cpu_ns = t.ready_ns = 0;
	look(p, &t);
	p->threads[p->count++] = t;
}

/* Threads that are new, from this time on; those that are not in the list any more are gone. */
static void list(struct proc_cpu *p, int64_t since_ns, bool from_zero)
{
	size_t known = p->count;
	int fd = openat(p->dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);
	struct dirent *de;

	if (!dir) {
		if (fd >= 0)
			close(fd);
		return;
	}
	p->lists++;
	p->want_list = false;
	while ((de = readdir(dir)) != NULL) {
		const char *name = de->d_name;
		struct thread *t;
		uint64_t tid;

		if (!next_number(&name, name + strlen(name), &tid) || *name || tid > INT32_MAX)
			continue;
		t = find(p, known, (int32_t)tid);
		if (t && !t->gone)
			t->listed = p->lists;
		else if (p->count < MAX_THREADS)
			add(p, (int32_t)tid, since_ns, from_zero);
	}
	closedir(dir);
	for (size_t i = 0; i < known; i++)
		if (p->threads[i].listed != p->lists)
			p->threads[i].gone = true;
}

/* Those that are gone leave; the others are in order. */
static void tidy(struct proc_cpu *p)
{
	size_t to = 0;

	for (size_t i = 0; i < p->count; i++) {
		struct thread *t = &p->threads[i];

		if (t->gone) {
			an_cputime_end(p->table, t->index);
			let_go(t);
		} else {
			p->threads[to++] = *t;
		}
	}
	p->count = to;
	if (to > 0)
		qsort(p->threads, to, sizeof(*p->threads), by_tid);
}

/* The number of links of the folder tells the number of threads. */
static bool list_is_due(const struct proc_cpu *p)
{
	struct stat st;

	return p->want_list || p->readings % LIST_EVERY == 0 || fstat(p->dir, &st) != 0 ||
	       st.st_nlink != p->count + 2;
}

/* --- a reading --- */

static void read_thread(struct proc_cpu *p, struct thread *t)
{
	uint64_t cpu, ready;

	if (!read_times(p, t, &cpu, &ready)) {
		t->gone = true;
		p->want_list = true;
		return;
	}
	if (cpu < t->cpu_ns || ready < t->ready_ns) {
		/* Another one has its number; it is found by the next list. */
		t->gone = true;
		p->want_list = true;
		return;
	}
	if (an_cputime_use(p->table, t->index, cpu - t->cpu_ns, ready - t->ready_ns) < 0)
		return; /* out of memory: the next reading has it all */
	t->cpu_ns = cpu;
	t->ready_ns = ready;
}

static void read_process(struct proc_cpu *p)
{
	int64_t ns = p->info.process_known ? now_ns(p->process_clock) : -1;

	if (ns >= 0 && (uint64_t)ns >= p->process_start_ns && p->count > 0)
		p->info.process_ns = (uint64_t)ns - p->process_start_ns;
}

static void read_all(struct proc_cpu *p)
{
	int64_t now = now_ns(CLOCK_MONOTONIC), since = p->last_ns;
	int64_t cost = now_ns(CLOCK_THREAD_CPUTIME_ID);
	size_t known = p->count;

	if (an_cputime_window(p->table, since + p->clock_offset_ns, now + p->clock_offset_ns) < 0)
		return;
	p->last_ns = now;
	p->readings++;
	for (size_t i = 0; i < known; i++)
		read_thread(p, &p->threads[i]);
	if (list_is_due(p)) {
		tidy(p);
		known = p->count;
		list(p, since, true);
		for (size_t i = known; i < p->count; i++)
			read_thread(p, &p->threads[i]);
		tidy(p);
	}
	for (size_t i = p->readings % LOOK_EVERY; i < p->count; i += LOOK_EVERY)
		look(p, &p->threads[i]);
	read_process(p);
	cost = now_ns(CLOCK_THREAD_CPUTIME_ID) - cost;
	p->info.cost_ns += (uint64_t)cost;
	p->last_cost_ns = (uint64_t)cost;
	an_cputime_set_info(p->table, &p->info);
	p->stats.interval_ms = (uint64_t)cost * COST_SHARE / 1000000;
	if (p->stats.interval_ms < p->config.interval_ms)
		p->stats.interval_ms = p->config.interval_ms;
	if (p->stats.interval_ms > MAX_INTERVAL_MS)
		p->stats.interval_ms = MAX_INTERVAL_MS;
}

static void on_timer(uv_timer_t *timer)
{
	struct proc_cpu *p = timer->data;

	read_all(p);
	uv_timer_start(timer, on_timer, p->stats.interval_ms, 0);
}

void proc_cpu_read(struct proc_cpu *p)
{
	int64_t gap = (int64_t)p->last_cost_ns * ASKED_SHARE;

	if (gap < MIN_GAP_MS * INT64_C(1000000))
		gap = MIN_GAP_MS * INT64_C(1000000);
	if (now_ns(CLOCK_MONOTONIC) - p->last_ns < gap)
		return;
	read_all(p);
	uv_timer_start(&p->timer, on_timer, p->stats.interval_ms, 0);
}

/* --- begin and end --- */

/* Whether the kernel counts what schedstat shows: else it shows zeros, or there is no such file. */
static enum an_cputime_source choose_source(const struct proc_cpu *p)
{
	char text[TEXT_BYTES];
	ssize_t n = read_text(p, p->config.pid, "schedstat", text, sizeof(text));
	uint64_t v[3];

	if (n > 0 && proc_cpu_parse_schedstat(text, (size_t)n, v) && (v[0] || v[2]))
		return AN_CPUTIME_SCHEDSTAT;
	return AN_CPUTIME_STAT;
}

/* The number of ns that a process's time namespace adds to CLOCK_MONOTONIC. */
static int64_t read_offset(const char *root, int32_t pid)
{
	char *text = proc_read_file(root, pid, "timens_offsets", TEXT_BYTES, NULL);
	long long s = 0, ns = 0;

	if (text && sscanf(text, "monotonic %lld %lld", &s, &ns) != 2)
		s = ns = 0;
	free(text);
	return (int64_t)s * 1000000000 + ns;
}

static int open_dir(struct proc_cpu *p)
{
	char path[256];

	snprintf(path, sizeof(path), "%s/%" PRId32 "/task", p->root, p->config.pid);
	p->dir = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	return p->dir < 0 ? errno : 0;
}

static void begin(struct proc_cpu *p)
{
	long ticks = sysconf(_SC_CLK_TCK);

	p->tick_ns = 1000000000 / (uint64_t)(ticks > 0 ? ticks : 100);
	p->real = strcmp(p->root, PROC_ROOT) == 0;
	p->translate = proc_other_namespace(p->root, p->config.pid, "pid");
	p->info.source = choose_source(p);
	p->info.process_id = proc_read_ns_pid(p->root, p->config.pid);
	if (p->real) {
		p->clock_offset_ns =
			read_offset(p->root, p->config.pid) - read_offset(p->root, getpid());
		p->info.process_known = clock_getcpuclockid(p->config.pid, &p->process_clock) == 0;
	}
	if (p->info.process_known) {
		int64_t ns = now_ns(p->process_clock);

		p->info.process_known = ns >= 0;
		p->process_start_ns = ns >= 0 ? (uint64_t)ns : 0;
	}
	p->last_ns = now_ns(CLOCK_MONOTONIC);
	list(p, p->last_ns, false);
	tidy(p);
	an_cputime_set_info(p->table, &p->info);
}

static void release(struct proc_cpu *p)
{
	for (size_t i = 0; i < p->count; i++)
		let_go(&p->threads[i]);
	if (p->dir >= 0)
		close(p->dir);
	free(p->threads);
	free(p->root);
	free(p);
}

struct proc_cpu *proc_cpu_start(uv_loop_t *loop, const struct proc_cpu_config *config,
				struct an_cputime *table, int *ret_error)
{
	struct proc_cpu *p = calloc(1, sizeof(*p));

	*ret_error = ENOMEM;
	if (!p)
		return NULL;
	p->config = *config;
	if (!p->config.interval_ms)
		p->config.interval_ms = INTERVAL_MS;
	p->dir = -1;
	p->table = table;
	p->root = strdup(config->root);
	if (p->root)
		*ret_error = open_dir(p);
	if (*ret_error == 0)
		begin(p);
	if (*ret_error == 0 && p->count == 0)
		*ret_error = ESRCH;
	if (*ret_error != 0) {
		release(p);
		return NULL;
	}
	p->stats.interval_ms = p->config.interval_ms;
	uv_timer_init(loop, &p->timer);
	p->timer.data = p;
	uv_timer_start(&p->timer, on_timer, p->stats.interval_ms, 0);
	return p;
}

static void on_closed(uv_handle_t *h)
{
	release(h->data);
}

struct proc_cpu *proc_cpu_close(struct proc_cpu *p)
{
	if (p)
		uv_close((uv_handle_t *)&p->timer, on_closed);
	return NULL;
}

void proc_cpu_get_stats(const struct proc_cpu *p, struct proc_cpu_stats *ret)
{
	*ret = p->stats;
	ret->readings = p->readings;
	ret->cost_ns = p->info.cost_ns;
	ret->threads = p->count;
	ret->open_files = 0;
	for (size_t i = 0; i < p->count; i++)
		ret->open_files += p->threads[i].fd >= 0;
}
