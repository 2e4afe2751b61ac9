#!/bin/bash
# The speed of the main job against what people use today, side by side in one
# run, and the benchmarks of each package. Figures drift from machine to
# machine; the ratios hold.
set -euo pipefail
shopt -s inherit_errexit
cd "$(dirname "$0")/.."
: "${GO:=go}" "${ROUNDS:=3}"

./scripts/tools.sh
tarball=$(./scripts/corpus.sh | tail -n 1)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
CGO_ENABLED=0 "$GO" build -o "$work/rocm-nightly" ./cmd/rocm-nightly

# seconds COMMAND...: wall time of one run, page cache warm, sync included.
seconds() {
	local begin end
	rm -rf "$work/out"
	sync -f "$work"
	begin=$(date +%s%N)
	"$@" >/dev/null 2>&1 || { echo "bench: failed: $*" >&2; return 1; }
	sync -f "$work"
	end=$(date +%s%N)
	echo $(((end - begin) / 1000000))
}

ours() { "$work/rocm-nightly" repack "$tarball" --prefix "$work/out" --progress none; }
plain_tar() { mkdir "$work/out" && tar xzf "$tarball" -C "$work/out"; }

# shell_road is what packagers' scripts do: verify, unpack, copy, patch each
# file with patchelf, write wrappers.
shell_road() {
	mkdir "$work/out" "$work/out/source"
	sha256sum "$tarball"
	tar xzf "$tarball" -C "$work/out/source"
	mkdir -p "$work/out/opt" "$work/out/bin"
	cp -a "$work/out/source" "$work/out/opt/rocm"
	find "$work/out/opt/rocm" -type f | while read -r f; do
		case $(head -c 4 "$f" | tr -d '\0') in
		'#!'*) sed -i '1s|^#!.*/python[0-9.]*$|#!/usr/bin/env python3|' "$f" ;;
		$'\x7fELF') patchelf --set-rpath '$ORIGIN:$ORIGIN/../lib:$ORIGIN/../lib/llvm/lib:$ORIGIN/../lib/rocm_sysdeps/lib' "$f" || true ;;
		esac
	done
	for f in "$work/out/opt/rocm/bin/"*; do
		printf '#!/bin/sh\nexec %s "$@"\n' "$f" >"$work/out/bin/${f##*/}"
	done
	chmod +x "$work/out/bin/"*
}

cat "$tarball" >/dev/null
for _ in $(seq "$ROUNDS"); do
	a=$(seconds ours)
	b=$(seconds plain_tar)
	c=$(seconds shell_road)
	awk -v a="$a" -v b="$b" -v c="$c" 'BEGIN {
		printf "repack %.1f s   tar xzf %.1f s (%.2fx)   shell road %.1f s (%.2fx)\n", a/1000, b/1000, b/a, c/1000, c/a }'
done

./scripts/bench-fetch.sh
./scripts/bench-patchelf.sh
"$GO" test -run '^$' -bench . -benchtime 3x -timeout 30m ./... | grep -E '^(Benchmark|pkg:)'
