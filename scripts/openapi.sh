#!/usr/bin/env bash
# Installs GitHub's OpenAPI description and a proxy that validates requests and
# responses against it, for the tests of bump/forge. Nothing lands in the tree.
#
#   scripts/openapi.sh           install it unless it is there; print its directory
#   scripts/openapi.sh --print   print the directory only; status 1 if it is not there
#
# The last line of standard output is the directory; all else goes to standard
# error. It holds github.json, the description cut down to the paths that are
# used, and node_modules/.bin/prism. The cache is in $ROCM_NIGHTLY_OPENAPI, by
# default ~/.cache/rocm-nightly/openapi, under the versions and the hash of what
# cuts: remove it at will.
set -euo pipefail
shopt -s inherit_errexit
umask 022
export LC_ALL=C

description=23.0.2 # @octokit/openapi
prism=5.16.0       # @stoplight/prism-cli

here=$(cd "$(dirname "$0")" && pwd)
cache=${ROCM_NIGHTLY_OPENAPI:-${XDG_CACHE_HOME:-${HOME:?set HOME or ROCM_NIGHTLY_OPENAPI}/.cache}/rocm-nightly/openapi}
cut=$(sha256sum "$here/openapi-cut.mjs" | cut -c1-12)
dir=$cache/$description-$prism-$cut

say() { printf 'openapi: %s\n' "$*" >&2; }
die() { say "$*"; exit 1; }

case ${1-} in
"") ;;
--print)
	[ -e "$dir/github.json" ] || exit 1
	echo "$dir"
	exit 0
	;;
*) die "no such argument: $1 (it takes --print or nothing)" ;;
esac

if [ ! -e "$dir/github.json" ]; then
	for tool in node npm; do
		command -v "$tool" >/dev/null || die "$tool is missing: apt-get install nodejs npm"
	done
	mkdir -p "$cache"
	# In a directory of its own, moved into place when it is whole: two may run.
	new=$(mktemp -d "$cache/.new.XXXXXX")
	trap 'rm -rf "$new"' EXIT
	chmod 755 "$new"
	say "installing @octokit/openapi $description and @stoplight/prism-cli $prism"
	(cd "$new" && npm install --no-audit --no-fund --ignore-scripts --save-exact --no-package-lock \
		"@octokit/openapi@$description" "@stoplight/prism-cli@$prism") >&2
	node "$here/openapi-cut.mjs" "$new/node_modules/@octokit/openapi/generated/api.github.com.json" "$new/cut.json"
	# The descriptions are 400 MB, of which one file was needed.
	rm -rf "$new/node_modules/@octokit/openapi/generated"
	mv "$new/cut.json" "$new/github.json"
	mv -T "$new" "$dir" 2>/dev/null || [ -e "$dir/github.json" ] || die "cannot move the installation to $dir"
	trap - EXIT
	rm -rf "$new"
fi
echo "$dir"
