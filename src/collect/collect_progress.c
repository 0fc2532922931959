/* SPDX-License-Identifier: MIT */
#include "src/collect/collect_progress.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

enum {
	IN_PLACE_MS = 500,
	LINES_MS = 60000,
	MAX_LINE = 320,
	NARROWEST = 20, /* columns; a terminal that says less does not know */
};

bool collect_progress_in_place(void)
{
	const char *term = getenv("TERM");

	return isatty(STDERR_FILENO) && term && strcmp(term, "dumb") != 0;
}

unsigned collect_progress_ms(bool quiet)
{
	if (quiet)
		return 0;
	return collect_progress_in_place() ? IN_PLACE_MS : LINES_MS;
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

/* What most needs to be known now. */
static void put_note(const struct collect_progress *p, char *buf, size_t size)
{
	char bytes[32];

	if (p->heap_walk && !p->stopping)
		snprintf(buf, size, "heap walk %u: %" PRIu64 " objects", p->heap_walk,
			 p->heap_objects);
	else if (p->stopping)
		snprintf(buf, size, "rundown: %s",
			 collect_format_bytes(p->rundown_bytes, bytes, sizeof(bytes)));
	else if (p->live)
		snprintf(buf, size, "%s", p->live);
	else if (p->waiting)
		snprintf(buf, size, "the disk is too slow");
	else if (p->lost)
		snprintf(buf, size, "events are lost: --buffersize");
	else if (!p->duration_ms)
		snprintf(buf, size, p->keys ? "(Enter stops)" : "(Ctrl-C stops)");
	else
		*buf = '\0';
}

const char *collect_progress_text(const struct collect_progress *p, char *buf, size_t size)
{
	uint64_t s = (p->elapsed_ns + 500000000) / 1000000000;
	char bytes[32], of[40] = "", note[200];

	if (p->duration_ms)
		snprintf(of, sizeof(of), " of %" PRIu64 " s", (p->duration_ms + 999) / 1000);
	put_note(p, note, sizeof(note));
	snprintf(buf, size,
		 "%02" PRIu64 ":%02" PRIu64 "%s  %s  %" PRIu64 " events  %" PRIu64 "/s  %" PRIu64
		 " lost%s%s",
		 s / 60, s % 60, of, collect_format_bytes(p->bytes, bytes, sizeof(bytes)),
		 p->events, p->events_per_s, p->lost, *note ? "  " : "", note);
	return buf;
}

void collect_progress_show(const struct collect_progress *p)
{
	struct winsize w = { 0 };
	char line[MAX_LINE];

	collect_progress_text(p, line, sizeof(line));
	if (!collect_progress_in_place()) {
		fprintf(stderr, "%s\n", line);
		return;
	}
	/* A line that wraps could not be taken back. */
	if (ioctl(STDERR_FILENO, TIOCGWINSZ, &w) == 0 && w.ws_col >= NARROWEST &&
	    w.ws_col <= strlen(line))
		line[w.ws_col - 1] = '\0';
	fprintf(stderr, "\r\033[K%s", line);
	fflush(stderr);
}

void collect_progress_clear(bool quiet)
{
	if (!quiet && collect_progress_in_place()) {
		fputs("\r\033[K", stderr);
		fflush(stderr);
	}
}
