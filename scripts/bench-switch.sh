#!/bin/bash
# A switch between two generations of 30,000 files: the package, the whole program
# (rocm-nightly rollback), and beside them what people write in a script, which
# makes nothing durable and records nothing. Milliseconds; the goal is 50.
#
#   scripts/bench-switch.sh    ROUNDS=20; WORK=a directory on the disk to write to
set -euo pipefail
shopt -s inherit_errexit
cd "$(dirname "$0")/.."
: "${GO:=go}" "${ROUNDS:=20}"

work=$(mktemp -d ${WORK:+-p "$WORK"})
trap 'rm -rf "$work"' EXIT
CGO_ENABLED=0 "$GO" build -o "$work/rocm-nightly" ./cmd/rocm-nightly
export STORE_BENCH_ROOT=$work/root
"$GO" test -run '^$' -bench '^Benchmark(Activate|Rollback|ShellSwitch)$' -benchtime "${ROUNDS}x" ./store >"$work/log"
echo "root: $work/root" >"$work/config.yaml"
: >"$work/verb"
for _ in $(seq "$ROUNDS"); do
	begin=$(date +%s%N)
	"$work/rocm-nightly" --config "$work/config.yaml" rollback >/dev/null
	end=$(date +%s%N)
	echo $((end - begin)) >>"$work/verb"
done
sort -n "$work/verb" | awk '{ v[NR] = $1 } END { printf "BenchmarkVerb 1 %d ns/op\n", v[int((NR + 1) / 2)] }' >>"$work/log"
awk '
	BEGIN { label["Activate"] = "activate"; label["Rollback"] = "rollback"; label["Verb"] = "rocm-nightly rollback"; label["ShellSwitch"] = "ln -sfn + mv -T in a shell" }
	/^Benchmark/ {
		name = $1; sub(/^Benchmark/, "", name); sub(/-[0-9]+$/, "", name)
		ms = $3 / 1e6
		printf "  %-28s %8.2f ms\n", label[name], ms
		if (name != "ShellSwitch" && ms > 50) missed = 1
	}
	END { print "  goal at most 50 ms: " (missed ? "MISSED" : "reached"); exit missed }' "$work/log"
