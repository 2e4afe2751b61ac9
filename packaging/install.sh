#!/bin/sh
# Installs what lies beside it, as `make install` does: below PREFIX (/usr/local), in
# DESTDIR if that is set. Nothing is enabled or started. --uninstall takes away what
# it installs, and leaves /etc/rocm-nightly and what the program itself has installed:
# `rocm-nightly uninstall` removes that, and comes first.
set -eu
cd "$(dirname "$0")"
: "${DESTDIR:=}" "${PREFIX:=/usr/local}" "${SYSCONFDIR:=/etc}"
umask 022

# what FILE goes to, as FROM MODE TO.
plan() {
	echo "rocm-nightly 755 $PREFIX/bin/rocm-nightly"
	for f in systemd/*.service systemd/*.socket systemd/*.timer systemd/*.path systemd/*.target systemd/*.slice; do
		echo "$f 644 $PREFIX/lib/systemd/system/${f#systemd/}"
	done
	for f in systemd/*/*; do
		case $f in
		systemd/user/*) echo "$f 644 $PREFIX/lib/$f" ;;
		systemd/sysusers.d/* | systemd/tmpfiles.d/*) echo "$f 644 $PREFIX/lib/${f#systemd/}" ;;
		*) echo "$f 644 $PREFIX/share/rocm-nightly/${f#systemd/}" ;; # to copy from
		esac
	done
	echo "completions/rocm-nightly.bash 644 $PREFIX/share/bash-completion/completions/rocm-nightly"
	echo "completions/_rocm-nightly 644 ${ZSHDIR:-$PREFIX/share/zsh/site-functions}/_rocm-nightly"
	echo "completions/rocm-nightly.fish 644 $PREFIX/share/fish/vendor_completions.d/rocm-nightly.fish"
	for f in man/*.[0-9]; do echo "$f 644 $PREFIX/share/man/man${f##*.}/${f#man/}"; done
	for f in README.md CHANGELOG.md SECURITY.md LICENSE THIRD-PARTY config.yaml docs/*.md; do
		echo "$f 644 $PREFIX/share/doc/rocm-nightly/$f"
	done
}

case ${1:-} in
"")
	plan | while read -r from mode to; do
		[ -e "$from" ] || continue
		install -D -m"$mode" "$from" "$DESTDIR$to"
		# The units name the program by its path.
		case $from in
		systemd/*)
			[ "$PREFIX" = /usr ] || sed -i "s|/usr/bin/rocm-nightly|$PREFIX/bin/rocm-nightly|g" "$DESTDIR$to"
			;;
		esac
	done
	install -d -m755 "$DESTDIR$SYSCONFDIR/rocm-nightly/config.d"
	config=$DESTDIR$SYSCONFDIR/rocm-nightly/config.yaml
	[ -e "$config" ] || install -m644 machine.yaml "$config"
	;;
--uninstall)
	plan | while read -r from _ to; do
		[ ! -e "$from" ] || rm -f "$DESTDIR$to"
	done
	for d in "$PREFIX/share/doc/rocm-nightly" "$PREFIX/share/rocm-nightly"; do
		[ ! -d "$DESTDIR$d" ] || find "$DESTDIR$d" -depth -type d -exec rmdir {} + 2>/dev/null || true
	done
	;;
*)
	echo "usage: [DESTDIR=DIR] [PREFIX=/usr/local] install.sh [--uninstall]" >&2
	exit 2
	;;
esac
