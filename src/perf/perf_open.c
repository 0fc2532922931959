/* SPDX-License-Identifier: MIT */
#include "src/perf/perf_open.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum {
	MAX_STACK = 127,
	STACK_BYTES = 2048, /* of the program's stack, to look for hidden frames */
};

/* Registers that perf_record.c knows: the frame pointer, then the stack pointer. */
#if defined(__x86_64__)
static const uint64_t registers = 1 << 6 | 1 << 7;
#elif defined(__aarch64__)
static const uint64_t registers = UINT64_C(1) << 29 | UINT64_C(1) << 31;
#else
static const uint64_t registers = 0;
#endif

static int real_open(void *ctx, const struct perf_event_attr *attr, int32_t tid, int cpu)
{
	long fd;

	(void)ctx;
	fd = syscall(SYS_perf_event_open, attr, tid, cpu, -1, (unsigned long)PERF_FLAG_FD_CLOEXEC);
	return fd < 0 ? -errno : (int)fd;
}

const struct perf_kernel perf_kernel_real = { real_open, NULL };

void perf_opener_init(struct perf_opener *o, const struct perf_kernel *kernel, unsigned frequency)
{
	*o = (struct perf_opener){
		.kernel = kernel, .frequency = frequency, .kernel_time = true, .modern = true
	};
}

static void fill(const struct perf_opener *o, struct perf_event_attr *a)
{
	*a = (struct perf_event_attr){
		.type = PERF_TYPE_SOFTWARE,
		.size = sizeof(*a),
		.config = PERF_COUNT_SW_CPU_CLOCK,
		.sample_freq = o->frequency,
		.freq = 1,
		.sample_type = PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_CALLCHAIN,
		.sample_id_all = 1,
		.inherit = 1,
		.mmap = 1,
		.mmap2 = 1,
		.comm = 1,
		.comm_exec = 1,
		.task = 1,
		.use_clockid = 1,
		.clockid = CLOCK_MONOTONIC,
		.exclude_hv = 1,
		.exclude_guest = 1,
		.exclude_kernel = !o->kernel_time,
		.exclude_callchain_kernel = !(o->kernel_frames && o->kernel_time),
		.sample_max_stack = MAX_STACK,
		.watermark = 1,
		.wakeup_watermark = UINT32_MAX, /* nobody waits: the rings are looked at in time */
	};
	if (registers) {
		a->sample_type |= PERF_SAMPLE_REGS_USER | PERF_SAMPLE_STACK_USER;
		a->sample_regs_user = registers;
		a->sample_stack_user = STACK_BYTES;
	}
	if (o->modern) {
		a->inherit_thread = 1;
		a->build_id = 1;
	}
}

int perf_opener_open(struct perf_opener *o, int32_t tid, int cpu)
{
	for (;;) {
		struct perf_event_attr attr;
		int fd;

		fill(o, &attr);
		fd = o->kernel->open(o->kernel->ctx, &attr, tid, cpu);
		if ((fd == -EINVAL || fd == -E2BIG) && o->modern)
			o->modern = false;
		else if ((fd == -EACCES || fd == -EPERM) && o->kernel_time)
			o->kernel_time = false;
		else
			return fd;
	}
}

void perf_open_describe(int error, int paranoid, char *why, size_t why_size, const char **advice)
{
	*advice = NULL;
	switch (-error) {
	case EACCES:
	case EPERM:
		if (paranoid > 2)
			snprintf(why, why_size,
				 "this kernel leaves perf events to the administrator "
				 "(kernel.perf_event_paranoid is %d)",
				 paranoid);
		else
			snprintf(why, why_size, "we may not, or a container forbids it");
		*advice = "run it as root or with CAP_PERFMON and CAP_SYS_PTRACE; in a container "
			  "also allow perf_event_open (docker: --cap-add PERFMON)";
		return;
	case ENOSYS:
		snprintf(why, why_size, "this kernel or container has no perf events");
		return;
	case EMFILE:
	case ENFILE:
		snprintf(why, why_size,
			 "too many open files: it takes one for each thread and "
			 "processor");
		*advice = "raise the limit of open files (ulimit -n)";
		return;
	case ESRCH:
		snprintf(why, why_size, "the process has ended");
		return;
	default:
		snprintf(why, why_size, "%s", strerror(-error));
	}
}
