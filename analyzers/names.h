/* SPDX-License-Identifier: MIT */
#ifndef ANALYZERS_NAMES_H
#define ANALYZERS_NAMES_H

/*
 * Names as a compiler wrote them, to names as a programmer wrote them.
 *
 *   Shop.Stuck+<FetchPriceAsync>d__2 . MoveNext    Shop.Stuck.FetchPriceAsync
 *   Shop.Program+<>c . <Main>b__0_1                Shop.Program.Main.<lambda>
 *   Shop.Cart . <Total>g__Round|4_0                Shop.Cart.Total.Round
 *   System.Collections.Generic.List`1[System.Int32] . Add System.Collections.Generic.List<int>.Add
 *
 * Pure functions from text to text; whatever does not look like one of these is left as it is.
 * All write at most size bytes, the terminator included.
 */

#include "analyzers/text.h"

/* type: full name with '+' for nesting, may be empty. */
void an_name_tidy(struct an_slice type, struct an_slice method, char *buf, size_t size);

/* "instance void  (class System.String,int32&)" gives "(string, ref int)"; "" without arguments. */
void an_name_args(struct an_slice signature, char *buf, size_t size);

/* One type as in a signature or in brackets, short: "class System.String[]" gives "string[]". */
void an_name_type(struct an_slice type, char *buf, size_t size);

/* The method in whose state machine or lambda a piece was made: "<Fetch>d__2" gives "Fetch". */
void an_name_member(struct an_slice piece, char *buf, size_t size);

/*
 * Without the type arguments, so that all instantiations have one name: "List<int>.Add" gives
 * "List<>.Add", "List`1[System.Int32].Add" gives "List`1.Add".
 */
void an_name_fold(struct an_slice name, char *buf, size_t size);

/* A name as in perf maps: "void [Shop] Shop.Cpu::Hot(int32)[OptimizedTier1]". */
struct an_perf_name {
	struct an_slice module; /* "Shop", or empty */
	struct an_slice type; /* "Shop.Cpu" */
	struct an_slice method; /* "Hot"; of native symbols the whole name without the tier */
	struct an_slice returns; /* "void" */
	struct an_slice arguments; /* "(int32)" */
	struct an_slice tier; /* "OptimizedTier1", or empty */
};

void an_name_split_perf(struct an_slice text, struct an_perf_name *ret);

#endif
