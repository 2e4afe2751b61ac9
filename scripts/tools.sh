#!/bin/sh
# Installs the programs that the tests run, with apt where that is possible.
# Everything else that the tests need is in go.mod.
set -eu

# command:package
want="gcc:gcc g++:g++ patch:patch git:git nginx:nginx-light readelf:binutils eu-elflint:elfutils patchelf:patchelf ld.lld-16:lld-16 clang-16:clang-16 mold:mold fish:fish tcsh:tcsh zsh:zsh busybox:busybox pkg-config:pkg-config dpkg-deb:dpkg minisign:minisign curl:curl aria2c:aria2 openssl:openssl setpriv:util-linux unshare:util-linux mount:mount mkfs.btrfs:btrfs-progs mkfs.xfs:xfsprogs pigz:pigz igzip:isal zopfli:zopfli libdeflate-gzip:libdeflate-tools bgzip:tabix python3:python3-minimal xz:xz-utils zstd:zstd /usr/bin/time:time taskset:util-linux clang-22:clang-22 cmake:cmake perl:perl-base libtool:libtool-bin mksh:mksh setfacl:acl"

missing=""
for pair in $want; do
	command -v "${pair%%:*}" >/dev/null 2>&1 || missing="$missing ${pair#*:}"
done
# A compiler without the headers of libc is half a compiler.
[ -e /usr/include/stdio.h ] || missing="$missing libc6-dev"
[ -n "$missing" ] || exit 0

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
$sudo apt-get install -y -qq --no-install-recommends $missing >/dev/null 2>&1 && exit 0
# One name that this release does not have fails them all: take what there is.
for package in $missing; do
	$sudo apt-get install -y -qq --no-install-recommends "$package" >/dev/null ||
		echo "tools: $package could not be installed; tests that need it are skipped" >&2
done
