/* SPDX-License-Identifier: MIT */

/*
 * measure RESULT COMMAND ARGS...
 *
 * Runs the command and writes one line to the file RESULT: wall-clock seconds, peak resident
 * bytes, exit code (128+N for a signal) and seconds of processor time.  A script cannot do this by
 * itself: what a process held before exec counts towards its peak, and an interpreter holds much.
 */

#include <errno.h>
#include <spawn.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>

extern char **environ;

static double seconds_now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (double)ts.tv_sec + (double)ts.tv_nsec * 1e-9;
}

static double seconds(struct timeval tv)
{
	return (double)tv.tv_sec + (double)tv.tv_usec * 1e-6;
}

int main(int argc, char **argv)
{
	struct rusage usage;
	double start;
	FILE *result;
	pid_t pid;
	int status, err;

	if (argc < 3) {
		fputs("usage: measure RESULT COMMAND ARGS...\n", stderr);
		return 2;
	}
	result = fopen(argv[1], "w");
	if (!result) {
		fprintf(stderr, "measure: cannot write '%s': %s\n", argv[1], strerror(errno));
		return 1;
	}
	start = seconds_now();
	err = posix_spawnp(&pid, argv[2], NULL, NULL, argv + 2, environ);
	if (err) {
		fprintf(stderr, "measure: cannot run '%s': %s\n", argv[2], strerror(err));
		fclose(result);
		return 1;
	}
	while (wait4(pid, &status, 0, &usage) < 0) {
		if (errno != EINTR)
			return 1;
	}
	fprintf(result, "%.6f %lld %d %.6f\n", seconds_now() - start,
		(long long)usage.ru_maxrss * 1024,
		WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status),
		seconds(usage.ru_utime) + seconds(usage.ru_stime));
	return fclose(result) == 0 ? 0 : 1;
}
