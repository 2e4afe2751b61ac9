#!/bin/sh
# Builds the Gitea that the tests talk to, from its Go module, and prints the
# path of the program. What it needs to start lies beside it. It is built once
# for each version, outside the tree; two at a time wait for each other.
#
#   scripts/gitea.sh            build it if it is not there yet
#   scripts/gitea.sh --cached   exit 3 if it is not there yet
set -eu

version=v1.26.0
dir="${XDG_CACHE_HOME:-$HOME/.cache}/rocm-nightly/gitea/$version"

if [ -x "$dir/gitea" ]; then
	echo "$dir/gitea"
	exit 0
fi
if [ "${1:-}" = --cached ]; then
	echo "gitea: $version is not built: run scripts/gitea.sh (minutes, once)" >&2
	exit 3
fi

mkdir -p "$(dirname "$dir")"
exec 9>"$dir.lock"
flock 9
if [ -x "$dir/gitea" ]; then # somebody else built it meanwhile
	echo "$dir/gitea"
	exit 0
fi

echo "gitea: building $version; this takes some minutes, once" >&2
stage="$dir.part"
rm -rf "$stage"
mkdir -p "$stage"
trap 'rm -rf "$stage"' EXIT
# In a module of its own that names nothing, so that ours is left alone.
src=$(cd "$stage" && go mod download -json "code.gitea.io/gitea@$version" | sed -n 's/^[[:space:]]*"Dir": "\(.*\)",*$/\1/p')
[ -n "$src" ] || {
	echo "gitea: the module code.gitea.io/gitea@$version cannot be had" >&2
	exit 1
}
# What takes the time is the compiler, so that it is told to try less hard: a
# test's server is not in a hurry.
(
	cd "$src"
	CGO_ENABLED=1 CGO_CFLAGS="-O0 -w" GOFLAGS="-mod=readonly -buildvcs=false" \
		go build -tags "sqlite sqlite_unlock_notify" -ldflags "-s -w -X main.Version=${version#v}" -o "$stage/gitea" .
)
for part in options templates public; do
	cp -R "$src/$part" "$stage/$part"
done
chmod -R u+w "$stage"
rm -rf "$dir"
mv "$stage" "$dir"
trap - EXIT
echo "$dir/gitea"
