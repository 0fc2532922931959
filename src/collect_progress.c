/* SPDX-License-Identifier: MIT */
#include "src/collect_progress.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

bool collect_progress_wanted(bool quiet)
{
	const char *term = getenv("TERM");

	return !quiet && isatty(STDERR_FILENO) && term && strcmp(term, "dumb") != 0;
}

const char *collect_format_bytes(uint64_t bytes, char *buf, size_t size)
{
	static const char *const units[] = { "B", "KB", "MB", "GB", "TB" };
	double v = (double)bytes;
	size_t u = 0;

	while (v >= 1000 && u + 1 < sizeof(units) / sizeof(units[0])) {
		v /= 1000;
		u++;
	}
	snprintf(buf, size, u == 0 ? "%.0f %s" : "%.1f %s", v, units[u]);
	return buf;
}

void collect_progress_show(const struct collect_progress *p)
{
	unsigned long s = (unsigned long)(p->elapsed_ns / 1000000000);
	char bytes[32], of[32] = "";

	if (p->duration_ms)
		snprintf(of, sizeof(of), " of %" PRIu64 " s", (p->duration_ms + 999) / 1000);
	/* Back to the first column, and clear what the last line had more. */
	fprintf(stderr, "\r\033[K%02lu:%02lu%s  %s  %" PRIu64 " events  %" PRIu64 " lost", s / 60,
		s % 60, of, collect_format_bytes(p->bytes, bytes, sizeof(bytes)), p->events,
		p->lost);
	if (p->stopping)
		fprintf(stderr, "  rundown: %s",
			collect_format_bytes(p->rundown_bytes, bytes, sizeof(bytes)));
	else if (!p->duration_ms)
		fputs("  (Ctrl-C stops)", stderr);
	fflush(stderr);
}

void collect_progress_clear(bool quiet)
{
	if (collect_progress_wanted(quiet)) {
		fputs("\r\033[K", stderr);
		fflush(stderr);
	}
}
