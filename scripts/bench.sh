#!/bin/bash
# The speed of the main job against what people use today, side by side in one
# run, and the benchmarks of each package. Figures drift from machine to
# machine; the ratios hold.
set -euo pipefail
shopt -s inherit_errexit
cd "$(dirname "$0")/.."
: "${GO:=go}"

./scripts/tools.sh
tarball=$(./scripts/corpus.sh | tail -n 1)

# Each says by its status whether its goals were reached: the others run all the same.
missed=""
for part in repack unpack fetch patchelf audit verify switch; do
	"./scripts/bench-$part.sh" || missed+=" $part"
done
ROCM_NIGHTLY_CORPUS_TARBALL=$tarball "$GO" test -run '^$' -bench . -benchtime 3x -timeout 30m ./... | grep -E '^(Benchmark|pkg:)'
[ -z "$missed" ] || { echo "bench: a goal was missed, or it failed:$missed" >&2; exit 1; }
