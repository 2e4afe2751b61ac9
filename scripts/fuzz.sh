#!/bin/bash
# Every fuzz target of the module, for a few seconds each.
# FUZZTIME (default 5s) is the time for one.
set -euo pipefail
cd "$(dirname "$0")/.."
: "${GO:=go}" "${FUZZTIME:=5s}"

n=0
while read -r file target; do
	n=$((n + 1))
	echo "fuzz: $target in $(dirname "$file")"
	"$GO" test -run '^$' -fuzz "^$target\$" -fuzztime "$FUZZTIME" -fuzzminimizetime 10x "./$(dirname "$file")" |
		grep -vE '^fuzz: elapsed|^PASS' || exit 1
done < <(grep -rEo --include='*_test.go' '^func (Fuzz[A-Za-z0-9_]+)' . | sed -E 's/^\.\/([^:]+):func /\1 /' | sort)
echo "fuzz: $n targets"
