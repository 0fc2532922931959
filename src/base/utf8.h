/* SPDX-License-Identifier: MIT */
#ifndef SRC_BASE_UTF8_H
#define SRC_BASE_UTF8_H

/*
 * Text that came from outside (a trace, another process, a file name) before it goes to a
 * terminal or into JSON: what is not UTF-8 is repaired, what steers a terminal is escaped.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { UTF8_BAD = 0xfffd }; /* the replacement character */

/*
 * The character at text[0..len), len > 0.  *ret_used is 1 to 4.  Bytes that are not UTF-8
 * (surrogates and overlong forms included) give UTF8_BAD and *ret_used 1.
 */
uint32_t utf8_next(const char *text, size_t len, size_t *ret_used);

/*
 * How many bytes at the start of text[0..len) mean themselves everywhere: printable ASCII without
 * quotes and backslashes.
 */
size_t utf8_plain(const char *text, size_t len);

/* True for characters that could move the cursor, hide or reorder text. */
bool utf8_is_control(uint32_t c);

/*
 * A copy of text[0..len) that is safe to show: \n \t \xNN \u{NNNN} for control characters, U+FFFD
 * for bad bytes.  Cut at a whole character to fit size, always terminated; returns its length.
 */
size_t utf8_escape(const char *text, size_t len, char *dst, size_t size);

/* Columns the text takes on a terminal, one a character. */
size_t utf8_columns(const char *text);

#endif
