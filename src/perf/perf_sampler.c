/* SPDX-License-Identifier: MIT */
#include "src/perf/perf_sampler.h"

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include "nettrace/idmap.h"
#include "src/proc/proc.h"

enum {
	LOOK_MS = 100,
	LOOK_HZ = 1000, /* more samples a second are looked for more often */
	RING_BYTES = 512 * 1024, /* of each processor; powers of two, */
	MIN_RING_BYTES = 32 * 1024, /* down to that where memory may not be locked */
	MAX_CPUS = 4096,
	MAX_SCANS = 20, /* for threads that are started meanwhile */
};

struct ring {
	int cpu;
	int fd; /* of the event that the buffer belongs to; -1: none yet */
	struct perf_event_mmap_page *page;
	size_t bytes;
};

struct perf_sampler {
	int32_t pid;
	bool other_pids; /* the process sees other numbers of threads than we do */
	uv_timer_t timer;
	struct perf_opener opener;
	struct ring *rings;
	size_t ring_count;
	int *fds;
	size_t fd_count, fd_cap;
	int end_fd; /* descriptors from here on are for others */
	struct nt_idmap known; /* threads that are sampled: tid -> index in the store, or NOT_YET */
	struct perf_scratch scratch;
	struct perf_counts counts;
	struct nt_perf store;
	struct perf_files files;
	enum nt_status status;
	bool stopped;
	bool off_loop; /* nothing of it is on the loop any more */
	bool unwanted;
};

enum { NOT_YET = UINT32_MAX - 1 };

/* --- what the kernel tells --- */

static void keep_status(struct perf_sampler *s, enum nt_status st)
{
	if (s->status == NT_OK && st < 0)
		s->status = st;
}

/* The thread's number as the process sees it. */
static uint64_t inner_tid(const struct perf_sampler *s, uint32_t tid)
{
	return s->other_pids ? (uint64_t)proc_read_ns_pid(PROC_ROOT, (int32_t)tid) : tid;
}

/* The name of the thread at that place of the store. */
static void read_name(struct perf_sampler *s, uint32_t tid, uint32_t thread)
{
	char file[64], *name;

	snprintf(file, sizeof(file), "task/%u/comm", (unsigned)tid);
	name = proc_read_file(PROC_ROOT, s->pid, file, 64, NULL);
	if (name)
		nt_perf_name_thread(&s->store, thread, name, strcspn(name, "\n"));
	free(name);
}

/* The thread's place in the store, looked up by our number of it; new if need be. */
static uint32_t thread_of(struct perf_sampler *s, uint32_t tid)
{
	uint32_t i = nt_idmap_get(&s->known, tid);
	enum nt_status st;

	if (i != NT_IDMAP_NONE && i != NOT_YET)
		return i;
	st = nt_perf_thread(&s->store, inner_tid(s, tid), &i);
	if (st == NT_OK)
		st = nt_idmap_put(&s->known, tid, i);
	if (st < 0) {
		if (st != NT_ELIMIT)
			keep_status(s, st);
		return NT_IDMAP_NONE;
	}
	read_name(s, tid, i);
	return i;
}

_Static_assert(NT_PERF_HIDDEN == PERF_HIDDEN, "one mark");

static void on_sample(void *ctx, const struct perf_sample *sample)
{
	struct perf_sampler *s = ctx;
	uint32_t thread;

	if (sample->pid != (uint32_t)s->pid) /* a process that it started */
		return;
	thread = thread_of(s, sample->tid);
	if (thread == NT_IDMAP_NONE) {
		s->store.info.dropped++;
		return;
	}
	keep_status(s, nt_perf_sample(&s->store, sample->time_ns, s->store.threads[thread].id,
				      sample->frames, sample->frame_count));
}

static void on_mapping(void *ctx, const struct perf_mapping *m)
{
	struct perf_sampler *s = ctx;

	if (m->pid == (uint32_t)s->pid)
		perf_files_add(&s->files, m);
}

static void on_thread_new(void *ctx, const struct perf_thread *t)
{
	struct perf_sampler *s = ctx;

	/* A number that is used again is another thread: its name and inner number are new. */
	if (t->pid == (uint32_t)s->pid)
		keep_status(s, nt_idmap_put(&s->known, t->tid, NOT_YET));
}

static void on_thread_name(void *ctx, const struct perf_thread *t)
{
	struct perf_sampler *s = ctx;
	uint32_t i = nt_idmap_get(&s->known, t->tid);

	if (t->pid == (uint32_t)s->pid && i != NT_IDMAP_NONE && i != NOT_YET)
		nt_perf_name_thread(&s->store, i, t->name, strlen(t->name));
}

static const struct perf_sink sink = { on_sample, on_mapping, on_thread_new, on_thread_name };

static void drain(struct perf_sampler *s)
{
	for (size_t i = 0; i < s->ring_count; i++) {
		struct ring *r = &s->rings[i];
		uint64_t head;

		if (!r->page)
			continue;
		head = __atomic_load_n(&r->page->data_head, __ATOMIC_ACQUIRE);
		head = perf_ring_read((const uint8_t *)r->page + sysconf(_SC_PAGESIZE), r->bytes,
				      r->page->data_tail, head, &s->scratch, &sink, s, &s->counts);
		__atomic_store_n(&r->page->data_tail, head, __ATOMIC_RELEASE);
	}
}

static void on_timer(uv_timer_t *timer)
{
	drain(timer->data);
}

/* --- events --- */

enum { OTHER_FDS = 16 /* for the session, its file, what is read in /proc */ };

/* Tens of descriptors for each thread: as many as we may have.  The first that is not ours. */
static int raise_limit(void)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit) != 0)
		return INT_MAX;
	if (limit.rlim_cur < limit.rlim_max) {
		rlim_t before = limit.rlim_cur;

		limit.rlim_cur = limit.rlim_max;
		if (setrlimit(RLIMIT_NOFILE, &limit) != 0)
			limit.rlim_cur = before;
	}
	if (limit.rlim_cur >= INT_MAX)
		return INT_MAX;
	return (int)limit.rlim_cur - OTHER_FDS;
}

static int keep_fd(struct perf_sampler *s, int fd)
{
	if (fd >= s->end_fd) {
		close(fd);
		return -EMFILE;
	}
	if (s->fd_count == s->fd_cap) {
		size_t cap = s->fd_cap ? s->fd_cap * 2 : 64;
		int *more = reallocarray(s->fds, cap, sizeof(*more));

		if (!more) {
			close(fd);
			return -ENOMEM;
		}
		s->fds = more;
		s->fd_cap = cap;
	}
	s->fds[s->fd_count++] = fd;
	return 0;
}

static int map_ring(struct ring *r, int fd)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);

	for (r->bytes = RING_BYTES; r->bytes >= MIN_RING_BYTES; r->bytes /= 2) {
		void *p = mmap(NULL, page + r->bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

		if (p != MAP_FAILED) {
			r->page = p;
			r->fd = fd;
			return 0;
		}
		if (errno != EPERM && errno != ENOMEM)
			break;
	}
	return -errno;
}

/* 0, or -errno. */
static int open_on(struct perf_sampler *s, struct ring *r, int32_t tid)
{
	int fd = perf_opener_open(&s->opener, tid, r->cpu), error;

	if (fd == -ENODEV) /* that processor was taken away */
		return 0;
	if (fd < 0)
		return fd;
	error = keep_fd(s, fd);
	if (error < 0)
		return error;
	if (r->page)
		return ioctl(fd, PERF_EVENT_IOC_SET_OUTPUT, r->fd) < 0 ? -errno : 0;
	return map_ring(r, fd);
}

static int open_thread(struct perf_sampler *s, int32_t tid)
{
	for (size_t i = 0; i < s->ring_count; i++) {
		int error = open_on(s, &s->rings[i], tid);

		if (error == -ESRCH && tid != s->pid)
			return 0; /* it has ended */
		if (error < 0)
			return error;
	}
	return nt_idmap_put(&s->known, (uint64_t)tid, NOT_YET) < 0 ? -ENOMEM : 0;
}

/*
 * Opens what is not sampled yet.  A thread that a sampled one has started inherited its events, of
 * which the buffers tell; so they are read first.  Returns how many were opened, or -errno.
 */
static int scan(struct perf_sampler *s)
{
	char path[64];
	struct dirent *de;
	DIR *dir;
	int opened = 0, error = 0;

	snprintf(path, sizeof(path), PROC_ROOT "/%d/task", (int)s->pid);
	dir = opendir(path);
	if (!dir)
		return errno == ENOENT ? -ESRCH : -errno;
	while (error == 0 && (de = readdir(dir)) != NULL) {
		long tid = strtol(de->d_name, NULL, 10);

		if (tid <= 0 || tid > INT32_MAX)
			continue;
		drain(s);
		if (nt_idmap_get(&s->known, (uint64_t)tid) != NT_IDMAP_NONE)
			continue;
		error = open_thread(s, (int32_t)tid);
		opened++;
	}
	closedir(dir);
	return error < 0 ? error : opened;
}

static int open_all(struct perf_sampler *s)
{
	for (unsigned i = 0; i < MAX_SCANS; i++) {
		int opened = scan(s);

		if (opened <= 0)
			return opened;
	}
	return 0; /* threads come faster than we look: they inherit from each other */
}

/* --- processors --- */

static bool add_cpus(struct perf_sampler *s, unsigned long from, unsigned long to)
{
	for (unsigned long cpu = from; cpu <= to && s->ring_count < MAX_CPUS; cpu++) {
		struct ring *more = reallocarray(s->rings, s->ring_count + 1, sizeof(*s->rings));

		if (!more)
			return false;
		s->rings = more;
		s->rings[s->ring_count++] = (struct ring){ .cpu = (int)cpu, .fd = -1 };
	}
	return true;
}

/* "0-3,8" */
static bool find_cpus(struct perf_sampler *s)
{
	char text[1024] = "";
	FILE *in = fopen("/sys/devices/system/cpu/online", "re");
	bool ok = in && fgets(text, sizeof(text), in);
	char *p = text;

	if (in)
		fclose(in);
	while (ok && *p >= '0' && *p <= '9') {
		unsigned long from = strtoul(p, &p, 10), to = from;

		if (*p == '-')
			to = strtoul(p + 1, &p, 10);
		ok = from <= to && to < MAX_CPUS && add_cpus(s, from, to);
		if (*p == ',')
			p++;
	}
	if (s->ring_count == 0)
		add_cpus(s, 0, (unsigned long)sysconf(_SC_NPROCESSORS_CONF) - 1);
	return s->ring_count > 0;
}

/* --- the whole --- */

static int paranoid_level(void)
{
	FILE *in = fopen(PROC_ROOT "/sys/kernel/perf_event_paranoid", "re");
	char text[16] = "";
	int level = -100;

	if (in && fgets(text, sizeof(text), in))
		level = (int)strtol(text, NULL, 10);
	if (in)
		fclose(in);
	return level;
}

static void release(struct perf_sampler *s)
{
	for (size_t i = 0; i < s->ring_count; i++)
		if (s->rings[i].page)
			munmap(s->rings[i].page, (size_t)sysconf(_SC_PAGESIZE) + s->rings[i].bytes);
	for (size_t i = 0; i < s->fd_count; i++)
		close(s->fds[i]);
	free(s->rings);
	free(s->fds);
	s->rings = NULL;
	s->fds = NULL;
	s->ring_count = s->fd_count = 0;
}

static void destroy(struct perf_sampler *s)
{
	release(s);
	nt_idmap_done(&s->known);
	nt_perf_done(&s->store);
	perf_files_done(&s->files);
	free(s);
}

static void on_timer_closed(uv_handle_t *h)
{
	struct perf_sampler *s = h->data;

	s->off_loop = true;
	if (s->unwanted)
		destroy(s);
}

struct perf_sampler *perf_sampler_start(uv_loop_t *loop, const struct perf_sampler_config *config,
					struct perf_refusal *ret)
{
	struct perf_sampler *s = calloc(1, sizeof(*s));
	int error = s ? 0 : -ENOMEM;
	uint64_t look_ms;

	*ret = (struct perf_refusal){ 0 };
	if (!s) {
		snprintf(ret->why, sizeof(ret->why), "out of memory");
		return NULL;
	}
	s->pid = config->pid;
	s->other_pids = proc_other_namespace(PROC_ROOT, config->pid, "pid");
	nt_idmap_init(&s->known, &nt_alloc_default);
	perf_opener_init(&s->opener, config->kernel ? config->kernel : &perf_kernel_real,
			 config->frequency);
	s->opener.kernel_frames = config->kernel_frames;
	uv_timer_init(loop, &s->timer);
	s->timer.data = s;
	perf_files_init(&s->files, config->pid);
	s->end_fd = raise_limit();
	if (nt_perf_init(&s->store, NULL) < 0 || !find_cpus(s))
		error = -ENOMEM;
	s->store.info.start_ns = uv_hrtime();
	s->store.info.period_ns = UINT64_C(1000000000) / config->frequency;
	if (error == 0)
		error = open_all(s);
	if (error < 0) {
		perf_open_describe(error, paranoid_level(), ret->why, sizeof(ret->why),
				   &ret->advice);
		perf_sampler_close(s);
		return NULL;
	}
	look_ms = config->frequency > LOOK_HZ ? LOOK_MS * LOOK_HZ / config->frequency : LOOK_MS;
	uv_timer_start(&s->timer, on_timer, look_ms, look_ms);
	return s;
}

void perf_sampler_stop(struct perf_sampler *s)
{
	struct nt_perf_info *info = &s->store.info;

	if (s->stopped)
		return;
	s->stopped = true;
	uv_close((uv_handle_t *)&s->timer, on_timer_closed);
	for (size_t i = 0; i < s->fd_count; i++)
		ioctl(s->fds[i], PERF_EVENT_IOC_DISABLE, 0);
	info->end_ns = uv_hrtime();
	drain(s);
	release(s);
	info->lost = s->counts.lost;
	info->throttled = s->counts.throttled;
	info->kernel_time = s->opener.kernel_time;
	info->dropped += s->files.dropped;
	nt_perf_sort(&s->store);
}

void perf_sampler_close(struct perf_sampler *s)
{
	if (!s)
		return;
	s->unwanted = true;
	if (s->off_loop)
		destroy(s);
	else if (!uv_is_closing((uv_handle_t *)&s->timer))
		uv_close((uv_handle_t *)&s->timer, on_timer_closed);
}

bool perf_sampler_sees_kernel(const struct perf_sampler *s)
{
	return s->opener.kernel_time;
}

struct nt_perf *perf_sampler_store(struct perf_sampler *s)
{
	return &s->store;
}

const struct perf_files *perf_sampler_files(const struct perf_sampler *s)
{
	return &s->files;
}

enum nt_status perf_sampler_status(const struct perf_sampler *s)
{
	return s->status;
}
