#!/usr/bin/env bash
# Installs what drives a browser, and what finds mistakes of accessibility, for the
# tests of the status page. Nothing lands in the tree. The browser itself is the
# system's chromium.
#
#   scripts/browser.sh           install it unless it is there; print its directory
#   scripts/browser.sh --print   print the directory only; status 1 if it is not there
#
# The last line of standard output is the directory; all else goes to standard
# error. It holds node_modules with playwright-core and axe-core. The cache is in
# $ROCM_NIGHTLY_BROWSER, by default ~/.cache/rocm-nightly/browser, under the
# versions: remove it at will.
set -euo pipefail
shopt -s inherit_errexit
umask 022
export LC_ALL=C

playwright=1.65.1 # playwright-core
axe=4.14.1        # axe-core

cache=${ROCM_NIGHTLY_BROWSER:-${XDG_CACHE_HOME:-${HOME:?set HOME or ROCM_NIGHTLY_BROWSER}/.cache}/rocm-nightly/browser}
dir=$cache/$playwright-$axe

say() { printf 'browser: %s\n' "$*" >&2; }
die() { say "$*"; exit 1; }

case ${1-} in
"") ;;
--print)
	[ -e "$dir/node_modules/axe-core/axe.min.js" ] || exit 1
	echo "$dir"
	exit 0
	;;
*) die "no such argument: $1 (it takes --print or nothing)" ;;
esac

if [ ! -e "$dir/node_modules/axe-core/axe.min.js" ]; then
	for tool in node npm; do
		command -v "$tool" >/dev/null || die "$tool is missing: apt-get install nodejs npm"
	done
	mkdir -p "$cache"
	# In a directory of its own, moved into place when it is whole: two may run.
	new=$(mktemp -d "$cache/.new.XXXXXX")
	trap 'rm -rf "$new"' EXIT
	chmod 755 "$new"
	say "installing playwright-core $playwright and axe-core $axe"
	(cd "$new" && npm install --no-audit --no-fund --ignore-scripts --save-exact --no-package-lock \
		"playwright-core@$playwright" "axe-core@$axe") >&2
	mv -T "$new" "$dir" 2>/dev/null || [ -e "$dir/node_modules" ] || die "cannot move the installation to $dir"
	trap - EXIT
	rm -rf "$new"
fi
echo "$dir"
