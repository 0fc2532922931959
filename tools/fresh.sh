# SPDX-License-Identifier: MIT
#
# A Debian 12 made from nothing, in the folder $root; sourced by bash after common.sh.

# fresh_root [PACKAGE,...]: from this machine's package sources
fresh_root()
{
	local sources
	sources=$(find /etc/apt/sources.list /etc/apt/sources.list.d -name '*.list' -o -name '*.sources' 2>/dev/null |
		while read -r file; do grep -qs '[^[:space:]]' "$file" && echo "$file"; done)
	[ -n "$sources" ] || die "this machine has no package sources"
	say "making a minimal system in $root"
	mmdebstrap --quiet --variant=minbase ${1:+--include="$1"} bookworm "$root" $sources 2>"$root.log" </dev/null || {
		cat "$root.log" >&2
		rm -f "$root.log"
		die "mmdebstrap failed"
	}
	rm -f "$root.log"
	# How this machine reaches its package sources.
	for file in /etc/apt/apt.conf.d/*; do
		case $file in *docker*) ;; *) cp "$file" "$root/etc/apt/apt.conf.d/" ;; esac
	done
	cp -L /etc/resolv.conf /etc/hosts "$root/etc/" 2>/dev/null
}

# inside COMMAND...: in the new system, with an empty environment
inside()
{
	unshare --mount --pid --fork bash -c '
		root=$1
		shift
		mount --make-rprivate / && mount -t proc proc "$root/proc" &&
			mount --rbind /dev "$root/dev" || exit 1
		exec chroot "$root" env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root TERM=dumb "$@"
	' bash "$root" "$@" </dev/null
}
