#!/bin/sh
# Formatting, vet and staticcheck over the whole module.
set -eu
cd "$(dirname "$0")/.."
: "${GO:=go}"

unformatted=$(gofmt -l .)
if [ -n "$unformatted" ]; then
	echo "gofmt would change:" >&2
	echo "$unformatted" >&2
	exit 1
fi
"$GO" vet ./...
"$GO" vet -tags heavy,bench ./...
"$GO" vet -tags faults ./...
"$GO" mod tidy -diff
# Pinned, so that a new release of the checker cannot break an old commit.
"$GO" run honnef.co/go/tools/cmd/staticcheck@v0.8.2 ./...
(cd packaging && "$GO" vet ./... && "$GO" run honnef.co/go/tools/cmd/staticcheck@v0.8.2 ./...)
echo "lint: ok"
