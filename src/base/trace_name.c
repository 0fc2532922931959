/* SPDX-License-Identifier: MIT */
#include "src/base/trace_name.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static bool ends_with(const char *text, const char *end)
{
	size_t n = strlen(text), k = strlen(end);

	return n >= k && strcmp(text + n - k, end) == 0;
}

bool trace_name_is_compressed(const char *path)
{
	return ends_with(path, ".zst");
}

static void put_plain(FILE *f, const char *text)
{
	for (; text && *text; text++) {
		unsigned char c = (unsigned char)*text;

		fputc(isalnum(c) || strchr(".-_+", c) || c >= 0x80 ? c : '_', f);
	}
}

static void put_value(FILE *f, char letter, const struct trace_name *v)
{
	char text[256];
	struct tm tm;

	switch (letter) {
	case 'p':
		fprintf(f, "%" PRId32, v->pid);
		break;
	case 'n':
		put_plain(f, v->process && *v->process ? v->process : "unknown");
		break;
	case 't':
		gmtime_r(&v->time, &tm);
		strftime(text, sizeof(text), "%Y%m%dT%H%M%SZ", &tm);
		fputs(text, f);
		break;
	case 'h':
		text[0] = '\0';
		if (!v->host && gethostname(text, sizeof(text)) != 0)
			text[0] = '\0';
		text[sizeof(text) - 1] = '\0';
		put_plain(f, v->host ? v->host : text);
		break;
	case '%':
		fputc('%', f);
		break;
	default:
		fputc('%', f);
		fputc(letter, f);
	}
}

bool trace_name_is_pattern(const char *text)
{
	for (const char *p = text; *p; p++)
		if (*p == '%' && (*++p == '\0' || !strchr("pnth%", *p)))
			return false;
	return true;
}

char *trace_name_expand(const char *pattern, const struct trace_name *values)
{
	char *text = NULL;
	size_t len;
	FILE *f = open_memstream(&text, &len);
	bool failed;

	if (!f)
		return NULL;
	for (const char *p = pattern; *p; p++) {
		if (*p == '%' && p[1])
			put_value(f, *++p, values);
		else
			fputc(*p, f);
	}
	failed = ferror(f);
	if (fclose(f) != 0 || failed) {
		free(text);
		return NULL;
	}
	return text;
}

const char *trace_name_ending(const char *path)
{
	static const char *const ends[] = { ".nettrace.zst", ".nettrace", ".zst", ".json",
					    ".txt",	     ".html",	  "" };
	size_t i = 0;

	while (!ends_with(path, ends[i]))
		i++;
	return path + strlen(path) - strlen(ends[i]);
}

char *trace_name_numbered(const char *path, unsigned number)
{
	const char *end = trace_name_ending(path);
	char *text;

	return asprintf(&text, "%.*s-%u%s", (int)(end - path), path, number, end) < 0 ? NULL : text;
}

char *trace_name_piece(const char *path, uint64_t number)
{
	const char *end = trace_name_ending(path);
	char *text;
	int n = asprintf(&text, "%.*s.%04" PRIu64 "%s", (int)(end - path), path, number, end);

	return n < 0 ? NULL : text;
}
