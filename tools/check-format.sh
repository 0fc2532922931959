#!/bin/bash
# SPDX-License-Identifier: MIT
# Whether every C file is as clang-format 14 would write it.  --fix writes it so.
set -u
cd "$(dirname "$0")/.." || exit 1
for tool in clang-format-14 clang-format; do
	if command -v $tool >/dev/null && $tool --version | grep -q 'version 14\.'; then
		files=$(find nettrace analyzers src tests tools -name '*.[ch]' | sort)
		if [ "${1-}" = --fix ]; then
			exec $tool -i $files
		fi
		exec $tool --dry-run --Werror $files
	fi
done
echo "skipped: clang-format-14 is not installed"
exit 77
