/* SPDX-License-Identifier: MIT */
#include "src/base/log.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "src/base/utf8.h"

enum { LINE_BYTES = 4096 };

/* One write a line: lines of several processes in one log do not mix. */
static void __attribute__((format(printf, 2, 0)))
say(const char *prefix, const char *fmt, va_list ap)
{
	char text[LINE_BYTES];
	char line[LINE_BYTES];
	size_t n = strlen(prefix);

	memcpy(line, prefix, n);
	if (vsnprintf(text, sizeof(text), fmt, ap) < 0)
		text[0] = '\0';
	n += utf8_escape(text, strlen(text), line + n, sizeof(line) - n - 1);
	line[n++] = '\n';
	/* Nothing is left to complain to when standard error itself fails. */
	if (write(STDERR_FILENO, line, n) < 0)
		return;
}

void log_error(const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	say("drdotnet-trace: ", fmt, ap);
	va_end(ap);
}

void log_warn(const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	say("drdotnet-trace: warning: ", fmt, ap);
	va_end(ap);
}

void log_advice(const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	say("  ", fmt, ap);
	va_end(ap);
}

void log_info(const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	say("", fmt, ap);
	va_end(ap);
}
