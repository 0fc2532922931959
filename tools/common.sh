# SPDX-License-Identifier: MIT
#
# What the scripts of this folder share; sourced by bash after it has set $here, the top folder.

say()
{
	echo "$(basename "$0"): $*" >&2
}

die()
{
	say "$*"
	exit 1
}

# have_item ITEM: an item is a command, or lib:NAME for a library with headers that pkg-config
# knows, or header:NAME.
have_item()
{
	case $1 in
	lib:*) pkg-config --exists "${1#lib:}" 2>/dev/null ;;
	header:*) echo "#include <${1#header:}>" | cc -E -x c - >/dev/null 2>&1 ;;
	*) command -v "$1" >/dev/null 2>&1 ;;
	esac
}

# need ITEM=PACKAGE...: makes sure that each item is there; root installs the packages of those
# that are not, anybody else is told which they are.
need()
{
	local pair packages=
	for pair in "$@"; do
		have_item "${pair%%=*}" || packages="$packages ${pair#*=}"
	done
	[ -n "$packages" ] || return 0
	if ! command -v apt-get >/dev/null; then
		die "please install first (names of Debian packages):$packages"
	elif [ "$(id -u)" != 0 ]; then
		die "please install first: apt-get install$packages"
	fi
	say "installing$packages"
	local log
	log=$(mktemp)
	if ! { apt_quietly update && apt_quietly install -y --no-install-recommends $packages; } \
		>"$log" 2>&1 </dev/null; then
		tail -n 20 "$log" >&2
		rm -f "$log"
		die "cannot install$packages (see above)"
	fi
	rm -f "$log"
	for pair in "$@"; do
		have_item "${pair%%=*}" || die "'${pair%%=*}' is missing although ${pair#*=} is installed"
	done
}

apt_quietly()
{
	DEBIAN_FRONTEND=noninteractive apt-get -q -o Dpkg::Use-Pty=0 "$@"
}

need_to_build()
{
	need cc=gcc header:stdio.h=libc6-dev meson=meson ninja=ninja-build pkg-config=pkg-config \
		lib:libuv=libuv1-dev lib:libzstd=libzstd-dev lib:libelf=libelf-dev \
		lib:sqlite3=libsqlite3-dev
}

# The folder for all build folders: build/ here, or one in the cache where this tree is somebody
# else's.
build_top()
{
	local top=$here/build
	if mkdir -p "$top" 2>/dev/null && [ -w "$top" ]; then
		echo "$top"
		return
	fi
	top=${XDG_CACHE_HOME:-$HOME/.cache}/drdotnet-trace/build-$(echo "$here" | cksum | cut -d' ' -f1)
	mkdir -p "$top" || die "cannot create a folder to build in"
	echo "$top"
}

# build_in FOLDER TARGETS MESON-OPTIONS...: sets up the folder the first time and builds TARGETS
# ("all" for everything).  Prints nothing unless it fails.
build_in()
{
	local folder=$1 targets=$2
	shift 2
	mkdir -p "$folder"
	(
		flock 8
		if [ "$(cat "$folder/.source" 2>/dev/null)" != "$here $*" ]; then
			rm -rf "$folder"/[!.]*
			meson setup "$folder" "$here" "$@" >"$folder/.log" 2>&1 8>&- ||
				{ tail -n 30 "$folder/.log" >&2; exit 1; }
			echo "$here $*" >"$folder/.source"
			say "building in $folder"
		fi
		ninja -C "$folder" $targets >"$folder/.log" 2>&1 8>&- ||
			{ grep -v "^\[[0-9]*/[0-9]*\]" "$folder/.log" | tail -n 60 >&2; exit 1; }
	) 8>"$folder/.lock" || die "the build failed (see above)"
}
