/* SPDX-License-Identifier: MIT */
#ifndef SRC_STORE_STORE_INTERNAL_H
#define SRC_STORE_STORE_INTERNAL_H

/* Between store.c (opening), store_write.c, store_read.c and store_files.c. */

#include <sqlite3.h>

#include "src/store/store.h"

struct store {
	sqlite3 *db;
	char *dir, *traces, *locks;
	enum store_mode mode;
};

/* Says what SQLite says, with the path; returns false. */
bool store_fail(const struct store *s, const char *what);

/*
 * One statement with its values: kinds has a letter for each, 'i' int64_t, 'd' double, 't' const
 * char * (NULL: null; must live until the statement ends).  NULL: said.
 */
sqlite3_stmt *store_prepare(struct store *s, const char *sql, const char *kinds, ...);
/* The same, run to its end; rows are ignored. */
bool store_run(struct store *s, const char *sql, const char *kinds, ...);
/* Ends a statement that was stepped through; status: of its last step. */
bool store_finish(struct store *s, sqlite3_stmt *q, int status);
/* The number of a word, given one where it has none; 0: failed, said. */
int64_t store_word(struct store *s, const char *text);
/* The same without giving one: -1 where it has none. */
bool store_find_word(struct store *s, const char *text, int64_t *ret);

/* Whether that is the name of a file in the folder of traces, and of no other. */
bool store_is_name(const char *text);

bool store_begin(struct store *s);
/* Commits if ok, else rolls back; returns whether all is well. */
bool store_end(struct store *s, bool ok);

#define STORE_DAY_MS INT64_C(86400000)

#endif
