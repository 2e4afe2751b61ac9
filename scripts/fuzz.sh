#!/bin/bash
# Every fuzz target of the module, for a few seconds each.
# FUZZTIME is the time for one; by default 5s, or less where all of them
# together would take more than three minutes and a half.
set -euo pipefail
cd "$(dirname "$0")/.."
: "${GO:=go}"

targets=$(grep -rE --include='*_test.go' -o '^func Fuzz[A-Za-z0-9_]+' . | sed -E 's|^\./(.*)/[^/]+:func (.*)$|\1 \2|' | sort)
each=$((210 / $(wc -l <<<"$targets") - 1)) # one second to build it
each=$((each > 5 ? 5 : each < 1 ? 1 : each))
: "${FUZZTIME:=${each}s}"

log=$(mktemp)
trap 'rm -f "$log"' EXIT

# run DIR TARGET: fuzzes, into the log.
run() {
	# Minimizing is for the one who looks at a finding, not for a short run.
	"$GO" test -run '^$' -fuzz "^$2\$" -fuzztime "$FUZZTIME" -fuzzminimizetime 10x "./$1" >"$log" 2>&1
}

# inputs DIR TARGET: what is kept for the target; a finding adds to it.
inputs() { find "$1/testdata/fuzz/$2" -type f 2>/dev/null | sort || true; }

# said: what a failure says, but for the engine's progress and go test's own words.
said() { grep -vE '^(fuzz: elapsed: |--- FAIL: Fuzz[A-Za-z0-9_]+ \(|FAIL|exit status 1$|$)' "$log" | sed 's/^ *//' || true; }

# fuzz DIR TARGET: whether it was fuzzed without a finding. Before Go 1.27 the
# engine may take the end of its time for an error (golang/go#75804). That is a
# failure which says nothing else and leaves no input; it is tried once more.
fuzz() {
	local before
	before=$(inputs "$1" "$2")
	run "$1" "$2" && return
	[ "$(said)" = "context deadline exceeded" ] && [ "$(inputs "$1" "$2")" = "$before" ] || return 1
	echo "fuzz: $2 in $1: the engine missed the end of its time; once more" >&2
	run "$1" "$2"
}

n=0
while read -r dir target; do
	n=$((n + 1))
	if ! fuzz "$dir" "$target"; then
		cat "$log"
		echo "fuzz: $target in $dir failed" >&2
		exit 1
	fi
	echo "fuzz: $target in $dir: $(grep -oE 'execs: [0-9]+' "$log" | tail -n 1)"
done <<<"$targets"
[ "$n" -gt 0 ]
echo "fuzz: $n targets, 0 failed"
