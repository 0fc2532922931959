/* SPDX-License-Identifier: MIT */
#ifndef SRC_PERF_KERNEL_SYMBOLS_H
#define SRC_PERF_KERNEL_SYMBOLS_H

/*
 * Names of functions of the kernel, from /proc/kallsyms:
 *
 *	ffffffff81000000 T _stext
 *	ffffffffc0401000 t mark_key	[ext4]
 *
 * in no order.  Whoever may not know the addresses reads 0 for all of them.
 */

#include "nettrace/perf_store.h"

#define KERNEL_SYMBOLS_FILE   "[kernel]"
#define KERNEL_SYMBOLS_PREFIX "[kernel] "

/*
 * Adds the functions that hold the addresses, which rise, and mappings around these.  *ret_hidden:
 * none of them has a name, as the file, that of /proc for path, has no addresses.  NT_ENOMEM.
 */
NT_MUST_CHECK enum nt_status kernel_symbols_add(struct nt_perf *p, const char *path,
						const uint64_t *addresses, size_t count,
						bool *ret_hidden);

#endif
