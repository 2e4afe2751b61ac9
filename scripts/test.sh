#!/bin/bash
# All tests, with the race detector. Installs the tools that they need where it
# can, builds the real corpus where it can, and names what was skipped. With
# ROCM_NIGHTLY_NO_SKIP=1 a skipped test is a failure.
set -euo pipefail
cd "$(dirname "$0")/.."
: "${GO:=go}"

./scripts/tools.sh

# Real forges: a Gitea, and what checks our requests against GitHub's own
# description of its API; and what drives a browser over the status page. All stay in
# the cache, by version; while they are made, so is the corpus.
./scripts/gitea.sh >/dev/null &
gitea=$!
./scripts/openapi.sh >/dev/null &
openapi=$!
./scripts/browser.sh >/dev/null &
browser=$!

if corpus=$(./scripts/corpus.sh | tail -n 1) && [ -f "$corpus" ] && ./scripts/corpus.sh --night 10.2.0a20261001 >/dev/null; then
	export ROCM_NIGHTLY_CORPUS_TARBALL=$corpus
else
	echo "test: the corpus could not be built; tests that need it are skipped" >&2
fi
wait "$gitea" || echo "test: Gitea could not be built; tests that need it are skipped" >&2
wait "$openapi" || echo "test: GitHub's description could not be installed; tests that need it are skipped" >&2
wait "$browser" || echo "test: what drives the browser could not be installed; tests that need it are skipped" >&2

log=$(mktemp)
trap 'rm -f "$log" "$log.e2e"' EXIT
race=-race
if ! echo '#include <stdio.h>' | gcc -fsyntax-only -xc - 2>/dev/null; then
	echo "test: no working C compiler, so no race detector" >&2
	race=
	export CGO_ENABLED=0
fi
status=0
# What internal/e2e tests is a program of its own, without the detector; the tests'
# own work, hashing trees, takes five times as long with it. It waits for disks most
# of the time, so that it goes on beside the others. go vet is scripts/lint.sh's.
e2e=$("$GO" list ./internal/e2e)
mapfile -t packages < <("$GO" list ./... | grep -vxF "$e2e")
"$GO" test -vet=off -count=1 -timeout 20m -v "$@" "$e2e" >"$log.e2e" 2>&1 &
beside=$!
"$GO" test -vet=off $race -count=1 -timeout 20m -v "$@" "${packages[@]}" >"$log" 2>&1 || status=$?
wait "$beside" || status=$?
cat "$log.e2e" >>"$log"
# From four processors on gzip is decompressed in pieces: unpack has to hold with that
# engine too, where there are fewer.
if [ $# = 0 ] && [ "$(nproc)" -lt 4 ]; then
	GOMAXPROCS=4 "$GO" test -vet=off $race -count=1 -timeout 20m -v \
		-run 'Damage|Gzip|Hangs|Member|Parallelism|TreeIs' ./unpack >>"$log" 2>&1 || status=$?
fi
# Every fault point, in a build that has them.
if [ $# = 0 ]; then
	"$GO" test -vet=off -tags faults -count=1 -timeout 20m -v -run 'Fault|Armed|Kinds' ./internal/fault ./internal/e2e >>"$log" 2>&1 || status=$?
fi
# What a release is packed into, by a module of its own.
if [ $# = 0 ]; then
	(cd packaging && "$GO" test -vet=off -count=1 -timeout 10m -v ./...) >>"$log" 2>&1 || status=$?
fi
grep -E '^(ok|FAIL|panic:|\?)' "$log" | grep -v 'no test files' || true
skipped=$(grep -E '^ *--- SKIP' "$log" || true)
if [ "$status" != 0 ]; then
	echo "---- what failed:"
	# What a test says stands before the line that says that it failed.
	grep -E -B 60 -A 40 '^ *--- FAIL|DATA RACE|^panic:|^# |\[build failed\]' "$log" | grep -vE '^ *(=== |--- (PASS|SKIP))' | head -n 300
fi
if [ -n "$skipped" ]; then
	echo "---- skipped:"
	grep -E -A 3 '^ *--- SKIP' "$log" | grep -vE '^(=== |--$)' | head -n 60
	if [ "${ROCM_NIGHTLY_NO_SKIP:-}" = 1 ]; then
		echo "test: skipping is forbidden here" >&2
		exit 1
	fi
fi
if [ "$status" = 0 ]; then
	echo "test: $(grep -cE '^ *--- PASS' "$log") passed, 0 failed"
fi
exit "$status"
