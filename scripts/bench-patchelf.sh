#!/bin/bash
# Sets a longer run path in libraries of 1 MB, 100 MB, 1.25 GB and 5 GB
# (sparse), with Debian's patchelf and with ours, side by side in one run:
# seconds, peak memory, bytes written, and their ratios. Figures drift from
# machine to machine; the ratios hold. It needs 8 GB of disk and apt-get, and
# installs nothing; ROUNDS=3, WORK=a directory.
#
# ours is the verb, one process a file; "edit" is the time of the edit alone, in
# a process that is running already, as `repack` makes it.
set -euo pipefail
shopt -s inherit_errexit
export LC_ALL=C
cd "$(dirname "$0")/.."
: "${GO:=go}" "${ROUNDS:=3}" "${PEER:=patchelf}"

die() { echo "bench: $*" >&2; exit 1; }
command -v "$PEER" >/dev/null || die "patchelf is missing: apt-get install patchelf"
[ -x /usr/bin/time ] || die "/usr/bin/time is missing: apt-get install time"
cache=${XDG_CACHE_HOME:-$HOME/.cache}/rocm-nightly/bench-patchelf
mkdir -p "$cache"
work=$(mktemp -d "${WORK:-$cache}/work-XXXXXX")
trap 'rm -rf "$work"' EXIT

CGO_ENABLED=0 "$GO" build -o "$work/rocm-nightly" ./cmd/rocm-nightly
CGO_ENABLED=0 "$GO" test -c -tags bench -o "$work/edit" ./patchelf

# package NAME GLOB: the path of a file of a Debian package, extracted once.
package() {
	if [ ! -e "$cache/$1/.done" ]; then
		rm -rf "${cache:?}/$1"
		mkdir "$cache/$1"
		(cd "$cache/$1" && apt-get -qq -o APT::Sandbox::User=root download "$1" >/dev/null 2>&1 && dpkg-deb -x ./*.deb . && rm ./*.deb) ||
			die "$1 cannot be had from apt (apt-get update?)"
		touch "$cache/$1/.done"
	fi
	find "$cache/$1" -type f -name "$2" -size +1M | head -n 1
}

# sparse FILE: FILE with its section headers behind a hole, at 5 GB.
sparse() { "$work/edit" -test.run TestBenchChore -make-sparse "$1" >/dev/null; }

longer='/a/rather/long/directory/that/does/not/exist:$ORIGIN/../lib:$ORIGIN/../lib/llvm/lib:$ORIGIN/../lib/rocm_sysdeps/lib:/opt/rocm/lib:/opt/rocm/llvm/lib'

# run COMMAND...: milliseconds, KiB of memory.
run() {
	local begin end
	begin=$(date +%s%N)
	/usr/bin/time -f %M -o "$work/memory" "$@" >/dev/null || die "failed: $*"
	end=$(date +%s%N)
	echo "$(((end - begin) / 1000)) $(cat "$work/memory")"
}

# strtab FILE: bytes of its dynamic string table.
strtab() { readelf -dW "$1" | sed -n 's/.*(STRSZ)[^0-9]*\([0-9]*\).*/\1/p' | head -n 1; }

fail=0
# compare LABEL FILE LARGEST
compare() {
	local a b e size=0 best_a=0 best_b=0 best_e=0 ram_a=0 ram_b=0 wrote=0 peer_wrote=0 table limit
	table=$(strtab "$2")
	for _ in $(seq "$ROUNDS"); do
		cp --sparse=always "$2" "$work/peer"; cp --sparse=always "$2" "$work/ours"; cp --sparse=always "$2" "$work/alone"
		sync -f "$work"
		cat "$work/peer" >/dev/null # the page cache is warm for both
		read -r a ram_a < <(run "$PEER" --set-rpath "$longer" "$work/peer")
		peer_wrote=$(stat -c %s "$work/peer")
		read -r b ram_b < <(run "$work/rocm-nightly" patchelf --set-rpath "$longer" "$work/ours")
		# Microseconds of the edit, bytes that it wrote.
		read -r e wrote < <("$work/edit" -test.run TestBenchChore -edit-once "$work/alone" -run-path "$longer" | head -n 1)
		[ "$best_a" != 0 ] && [ "$a" -ge "$best_a" ] || best_a=$a
		[ "$best_b" != 0 ] && [ "$b" -ge "$best_b" ] || best_b=$b
		[ "$best_e" != 0 ] && [ "$e" -ge "$best_e" ] || best_e=$e
		size=$(stat -c %s "$2")
	done
	[ "$("$work/rocm-nightly" patchelf --print-rpath "$work/ours")" = "$longer" ] || die "$1: the run path was not set"
	[ "$("$PEER" --print-rpath "$work/alone" 2>/dev/null || echo "$longer")" = "$longer" ] || die "$1: the run path was not set"
	limit=10000
	[ "${table:-0}" -lt 1048576 ] || limit=50000
	awk -v label="$1" -v size="$size" -v a="$best_a" -v b="$best_b" -v e="$best_e" -v ra="$ram_a" -v rb="$ram_b" -v wa="$peer_wrote" -v wb="$wrote" \
		-v table="${table:-0}" -v limit="$limit" -v largest="$3" 'BEGIN {
		printf "%-14s %8.1f MB | patchelf %8.3f s %8.1f MB memory %9.3f MB written | ours %6.1f ms (edit %5.1f ms) %6.1f MB memory %8.1f kB written | %.0fx as fast (edit %.0fx), %.1fx less memory, %.0fx less written\n",
			label, size/1e6, a/1e6, ra/1e3, wa/1e6, b/1e3, e/1e3, rb/1e3, wb/1e3, a/b, a/e, ra/rb, wa/(wb+1)
		bad = 0
		if (e > limit) { printf "  MISSED: the edit takes more than %d ms\n", limit/1e3; bad = 1 }
		if (wb > table + 65536) { print "  MISSED: more than the string table and 64 KiB written"; bad = 1 }
		if (largest && a/b < 300) { printf "  MISSED: less than 300 times as fast\n"; bad = 1 }
		exit bad }' || fail=1
	rm -f "$work/peer" "$work/ours" "$work/alone"
}

printf '#include <stdio.h>\nstatic char data[1000000] = {1}; int f(void) { return puts(data); }\n' >"$work/small.c"
gcc -shared -fPIC -o "$work/small" "$work/small.c"
cp "$work/small" "$work/sparse"
sparse "$work/sparse"

compare small "$work/small" 0
compare libLLVM "$(package libllvm16 'libLLVM-16.so.1')" 0
compare librocsparse "$(package librocsparse0 'librocsparse.so.0*')" 0
compare sparse "$work/sparse" 1
exit "$fail"
