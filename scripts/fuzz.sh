#!/bin/bash
# Every fuzz target of the module, for a few seconds each.
# FUZZTIME is the time for one; by default 5s, or less where all of them
# together would take more than four minutes.
set -euo pipefail
cd "$(dirname "$0")/.."
: "${GO:=go}"

targets=$(grep -rE --include='*_test.go' -o '^func Fuzz[A-Za-z0-9_]+' . | sed -E 's|^\./(.*)/[^/]+:func (.*)$|\1 \2|' | sort)
each=$((240 / $(wc -l <<<"$targets") - 1)) # one second to build it
each=$((each > 5 ? 5 : each < 1 ? 1 : each))
: "${FUZZTIME:=${each}s}"

log=$(mktemp)
trap 'rm -f "$log"' EXIT
n=0
while read -r dir target; do
	n=$((n + 1))
	# Minimizing is for the one who looks at a finding, not for a short run.
	if ! "$GO" test -run '^$' -fuzz "^$target\$" -fuzztime "$FUZZTIME" -fuzzminimizetime 10x "./$dir" >"$log" 2>&1; then
		cat "$log"
		echo "fuzz: $target in $dir failed" >&2
		exit 1
	fi
	echo "fuzz: $target in $dir: $(grep -oE 'execs: [0-9]+' "$log" | tail -n 1)"
done <<<"$targets"
[ "$n" -gt 0 ]
echo "fuzz: $n targets, 0 failed"
