/* SPDX-License-Identifier: MIT */
#include "src/store/when.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

#include "src/base/options.h"

static const char expected[] =
	"a time is needed: 2026-11-29, 2026-11-29T10:30:00Z, or 7d for 7 days "
	"ago";

/* Whether the whole text is of that form; strptime() alone takes 31 February. */
static bool parse_as(const char *text, const char *format, int64_t *ret_ms)
{
	struct tm tm = { 0 }, again;
	const char *end = strptime(text, format, &tm);
	time_t t;

	if (!end || *end)
		return false;
	again = tm;
	t = timegm(&again);
	if (again.tm_mday != tm.tm_mday || again.tm_mon != tm.tm_mon)
		return false;
	*ret_ms = (int64_t)t * 1000;
	return true;
}

const char *when_parse(const char *text, int64_t now_ms, int64_t *ret_ms)
{
	static const char *const formats[] = { "%Y-%m-%d",	     "%Y-%m-%dT%H:%M",
					       "%Y-%m-%d %H:%M",     "%Y-%m-%dT%H:%M:%S",
					       "%Y-%m-%d %H:%M:%S",  "%Y-%m-%dT%H:%M:%SZ",
					       "%Y-%m-%d %H:%M:%SZ", "%Y-%m-%dT%H:%MZ" };
	uint64_t ns;

	if (strcmp(text, "now") == 0) {
		*ret_ms = now_ms;
		return NULL;
	}
	for (size_t i = 0; i < sizeof(formats) / sizeof(formats[0]); i++)
		if (parse_as(text, formats[i], ret_ms))
			return NULL;
	if (!opt_parse_duration(text, &ns)) {
		*ret_ms = now_ms - (int64_t)(ns / 1000000);
		return NULL;
	}
	return expected;
}

static bool to_tm(int64_t time_ms, struct tm *ret)
{
	time_t t = (time_t)(time_ms / 1000 - (time_ms % 1000 < 0));

	return gmtime_r(&t, ret) != NULL;
}

const char *when_text(int64_t time_ms, char *ret)
{
	struct tm tm;

	if (!to_tm(time_ms, &tm) || !strftime(ret, WHEN_BYTES, "%Y-%m-%dT%H:%M:%SZ", &tm))
		snprintf(ret, WHEN_BYTES, "?");
	return ret;
}

const char *when_text_day(int64_t time_ms, char *ret)
{
	struct tm tm;

	if (!to_tm(time_ms, &tm) || !strftime(ret, WHEN_BYTES, "%a %Y-%m-%d %H:%M", &tm))
		snprintf(ret, WHEN_BYTES, "?");
	return ret;
}

int64_t when_now_ms(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_REALTIME, &ts);
	return (int64_t)ts.tv_sec * 1000 + ts.tv_nsec / 1000000;
}
