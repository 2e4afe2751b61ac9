#!/bin/sh
# Installs the programs that the tests run, with apt where that is possible.
# Everything else that the tests need is in go.mod.
set -eu

# command:package
want="gcc:gcc g++:g++ musl-gcc:musl-tools patch:patch git:git nginx:nginx-light readelf:binutils eu-elflint:elfutils patchelf:patchelf ld.lld-16:lld-16 clang-16:clang-16 mold:mold fish:fish tcsh:tcsh zsh:zsh busybox:busybox pkg-config:pkg-config dpkg-deb:dpkg minisign:minisign curl:curl aria2c:aria2 openssl:openssl setpriv:util-linux unshare:util-linux mount:mount mkfs.btrfs:btrfs-progs mkfs.xfs:xfsprogs pigz:pigz igzip:isal zopfli:zopfli libdeflate-gzip:libdeflate-tools bgzip:tabix python3:python3-minimal xz:xz-utils zstd:zstd /usr/bin/time:time taskset:util-linux clang-22:clang-22 cmake:cmake perl:perl-base libtool:libtool-bin mksh:mksh setfacl:acl ksh93:ksh93u+m modulecmd:environment-modules matchpathcon:selinux-utils sefcontext_compile:selinux-utils flock:util-linux strace:strace mkfs.ext4:e2fsprogs makepkg:makepkg pacman:pacman-package-manager fakeroot:fakeroot bsdtar:libarchive-tools shellcheck:shellcheck cmark-gfm:cmark-gfm node:nodejs npm:npm chromium:chromium /usr/sbin/sshd:openssh-server ssh:openssh-client promtool:prometheus systemd-analyze:systemd lintian:lintian rpm:rpm mandoc:mandoc groff:groff-base"

missing=""
for pair in $want; do
	command -v "${pair%%:*}" >/dev/null 2>&1 || missing="$missing ${pair#*:}"
done
# A compiler without the headers of libc is half a compiler.
[ -e /usr/include/stdio.h ] || missing="$missing libc6-dev"
# Debian's lmod excludes environment-modules, so that it is unpacked beside it.
lmod=""
[ -e /usr/share/lmod ] || [ -e /opt/lmod ] || lmod=" lua5.3 lua-filesystem lua-json lua-posix lua-term"
missing="$missing$lmod"
[ -n "$missing" ] || exit 0

unpack_lmod() {
	[ -n "$lmod" ] || return 0
	dir=$(mktemp -d)
	(cd "$dir" && apt-get download -qq lmod && $sudo dpkg -x lmod_*.deb /opt/lmod) >/dev/null 2>&1 ||
		echo "tools: lmod could not be unpacked; tests that need it are skipped" >&2
	rm -rf "$dir"
}

sudo=""
if [ "$(id -u)" != 0 ]; then
	if ! command -v sudo >/dev/null 2>&1 || ! sudo -n true 2>/dev/null; then
		echo "tools: not installed, and not root:$missing; tests that need them are skipped" >&2
		exit 0
	fi
	sudo="sudo"
fi
if ! command -v apt-get >/dev/null 2>&1; then
	echo "tools: no apt-get here; install by hand:$missing; tests that need them are skipped" >&2
	exit 0
fi
echo "tools: installing$missing" >&2
export DEBIAN_FRONTEND=noninteractive
$sudo apt-get update -qq || true
# shellcheck disable=SC2086 # a list of words
$sudo apt-get install -y -qq --no-install-recommends $missing >/dev/null 2>&1 && {
	unpack_lmod
	exit 0
}
# One name that this release does not have fails them all: take what there is.
for package in $missing; do
	$sudo apt-get install -y -qq --no-install-recommends "$package" >/dev/null ||
		echo "tools: $package could not be installed; tests that need it are skipped" >&2
done
unpack_lmod
