#!/bin/bash
# SPDX-License-Identifier: MIT
#
# tools/check-layers.sh LIBNETTRACE.a LIBANALYZERS.a
#
# The arrow nettrace <- analyzers <- src: what the two pure libraries call, and what they include.
set -u
here=$(cd "$(dirname "$0")/.." && pwd)
failed=0

complain()
{
	echo "$*"
	failed=1
}

# The part of the C library that needs neither files nor clocks nor a process.  Nothing may be
# added here that does I/O.
pure='memchr memcmp memcpy memmove memset memmem strchr strcmp strcspn strlen strncmp strnlen strrchr
strspn strstr strtol strtoll strtoul strtoull strtod snprintf vsnprintf qsort bsearch realloc free
isalnum isalpha isdigit isspace isupper islower toupper tolower __ctype_b_loc __ctype_tolower_loc
__ctype_toupper_loc abs fabs floor ceil lround llround round sqrt log2 abort __assert_fail
__stack_chk_fail __memcpy_chk __memmove_chk __memset_chk __snprintf_chk __vsnprintf_chk
__divti3 __modti3 __udivti3 __umodti3 __popcountdi2 _GLOBAL_OFFSET_TABLE_'
pure=$(echo "$pure" | tr ' ' '\n')

# undefined LIBRARY: names it needs from elsewhere
undefined()
{
	local names
	names=$(nm -u "$1" 2>/dev/null | awk '$1 == "U" { print $2 }' | sort -u)
	comm -23 <(echo "$names") <(nm --defined-only "$1" | awk 'NF == 3 { print $3 }' | sort -u)
}

# check LIBRARY PREFIX...: undefined names must be pure or begin with a PREFIX
check()
{
	local library=$1 name prefix ok
	shift
	[ -s "$library" ] || { complain "$library is missing"; return; }
	[ -n "$(nm "$library" 2>/dev/null)" ] || complain "$library has no symbols"
	for name in $(undefined "$library"); do
		ok=0
		echo "$pure" | grep -qx -- "$name" && ok=1
		for prefix in "$@"; do
			case $name in "$prefix"*) ok=1 ;; esac
		done
		[ $ok = 1 ] || complain "$(basename "$library") calls '$name', which a pure library may not"
	done
}

# includes FOLDER ALLOWED-FOLDER...: project headers must stand directly in an allowed folder
includes()
{
	local folder=$1 allowed
	shift
	[ -d "$here/$folder" ] || { complain "$folder/ is missing"; return; }
	allowed=$(printf '%s\n' "$@" | paste -sd'|')
	if grep -rnE --include='*.[ch]' '#include "' "$here/$folder" |
		grep -vE "#include \"($allowed)/[a-z0-9_]+\.h\""; then
		complain "$folder/ may include only: $*"
	fi
}

# pure FOLDER: the C library without the world
pure_includes()
{
	if grep -rnE --include='*.[ch]' \
		'#include <(sys/|unistd|fcntl|time\.h|signal|pthread|dirent|uv|zstd|netinet|errno)' \
		"$here/$1"; then
		complain "$1/ may use only the pure part of the C library"
	fi
}

check "$1"
check "$2" nt_
includes nettrace nettrace
includes analyzers nettrace 'analyzers(/[a-z]+)?'
pure_includes nettrace
pure_includes analyzers
# An analyzer knows what stands beside the folders, and itself.  The tasks section also says what a
# walk of the heap found.
for folder in "$here"/analyzers/*/; do
	name=$(basename "$folder")
	others=
	[ "$name" = tasks ] && others=analyzers/heap
	includes "analyzers/$name" nettrace analyzers "analyzers/$name" $others
done
# The folders of the program, from the ground up: each may use those before it.
below='nettrace|analyzers(/[a-z]+)?'
for name in base proc perf ipc report trace counters collect process stack store; do
	below="$below|src/$name"
	includes "src/$name" "$below"
done
for folder in "$here"/src/*/; do
	case $(basename "$folder") in
	man|completion) ;;
	*) [[ "$below|" == *"|src/$(basename "$folder")|"* ]] || complain "$folder has no place in the order" ;;
	esac
done
if grep -rnE '#include "tests/' "$here/nettrace" "$here/analyzers" "$here/src"; then
	complain "nobody includes tests/"
fi
exit $failed
