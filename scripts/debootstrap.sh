#!/bin/sh
# Makes a small Debian with systemd, once, in the cache, and prints where it is.
#
#   ./scripts/debootstrap.sh [SUITE]
#
# It needs root and debootstrap. The tree is a base to copy: do not change it.
set -eu

suite=${1:-bookworm}
cache=${XDG_CACHE_HOME:-$HOME/.cache}/rocm-nightly/debootstrap
base=$cache/$suite

if [ -e "$base" ]; then
	echo "$base"
	exit 0
fi
if [ "$(id -u)" != 0 ] || ! command -v debootstrap >/dev/null 2>&1; then
	echo "debootstrap: this needs root, and debootstrap (apt install debootstrap)" >&2
	exit 1
fi
mkdir -p "$cache"
work=$(mktemp -d "$cache/.$suite-XXXXXX")
trap 'rm -rf "$work"' EXIT
chmod 755 "$work"
echo "debootstrap: making $base, a few minutes" >&2
debootstrap --variant=minbase --include=systemd,systemd-sysv,dbus,libpam-systemd,ca-certificates \
	"$suite" "$work/root" >"$cache/$suite.log" 2>&1 || {
	tail -n 20 "$cache/$suite.log" >&2
	exit 1
}
rm -rf "$work"/root/var/cache/apt/archives/*.deb "$work"/root/var/lib/apt/lists/*
: >"$work/root/etc/machine-id" # each copy gets its own
mv -T "$work/root" "$base"
echo "$base"
