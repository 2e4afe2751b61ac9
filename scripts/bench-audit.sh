#!/bin/bash
# The audit against ldd in a loop, which is what people do instead and which sees
# libraries alone, and against the loader itself in a loop: on the prefix that the
# corpus becomes, and on a tree of 30,000 files made of copies of it. Wall and
# processor seconds with a warm page cache. Figures drift from machine to machine;
# the ratios hold.
#
#   scripts/bench-audit.sh    ROUNDS=3; WORK=a directory on the disk to write to
set -euo pipefail
shopt -s inherit_errexit
export LC_ALL=C
cd "$(dirname "$0")/.."
: "${GO:=go}" "${ROUNDS:=3}"

die() { echo "bench-audit: $*" >&2; exit 1; }
for tool in ldd:libc-bin /usr/bin/time:time; do
	command -v "${tool%%:*}" >/dev/null || die "${tool%%:*} is missing: apt-get install ${tool#*:}"
done
tarball=$(./scripts/corpus.sh | tail -n 1)
work=$(mktemp -d ${WORK:+-p "$WORK"})
trap 'rm -rf "$work"' EXIT
CGO_ENABLED=0 "$GO" build -o "$work/rocm-nightly" ./cmd/rocm-nightly
"$work/rocm-nightly" repack "$tarball" --prefix "$work/corpus" --arch gfx1036 --progress none >/dev/null

# Copies that share their content, beside each other as bin and lib are; the
# run paths, which are relative, lead each copy to itself.
cp -al "$work/corpus/opt/rocm" "$work/many"
for i in 1 2 3 4 5 6; do cp -al "$work/corpus/opt/rocm" "$work/many/copy$i"; done

# dynamic DIR: the programs and libraries of a tree that need others, NUL between.
dynamic() {
	find "$1" -type f -print0 | while IFS= read -r -d '' f; do
		[ "$(head -c 4 "$f" | tr -d '\0')" = $'\x7fELF' ] || continue
		case $(readelf -hdW "$f" 2>/dev/null) in
		*X86-64*'(NEEDED)'*) printf '%s\0' "$f" ;;
		esac
	done
}

audit() { "$work/rocm-nightly" audit "$dir" --refuse never >/dev/null; }
ldd_loop() { while IFS= read -r -d '' f; do ldd "$f" || true; done <"$list" >/dev/null 2>&1; }
loader_loop() {
	while IFS= read -r -d '' f; do
		LD_TRACE_LOADED_OBJECTS=1 /lib64/ld-linux-x86-64.so.2 "$f" || true
	done <"$list" >/dev/null 2>&1
}
export work
export -f audit ldd_loop loader_loop

missed=0
for tree in corpus many; do
	export dir=$work/$tree list=$work/$tree.list
	dynamic "$dir" >"$list"
	: >"$work/log"
	audit # warms the cache
	for _ in $(seq "$ROUNDS"); do
		for name in audit loader_loop ldd_loop; do
			# On many files the loops take minutes and say nothing new.
			[ "$tree" = corpus ] || [ "$name" = audit ] || [ ! -s "$work/log.$name" ] || continue
			begin=$(date +%s%N)
			/usr/bin/time -f '%U %S %M' -o "$work/time" bash -c "$name" || die "failed: $name"
			end=$(date +%s%N)
			read -r user system memory < <(tail -n 1 "$work/time")
			awk -v n="$name" -v ns=$((end - begin)) -v u="$user" -v s="$system" -v m="$memory" 'BEGIN { print n, ns / 1e9, u + s, m }' >>"$work/log"
			[ "$tree" = corpus ] || echo done >"$work/log.$name"
		done
	done
	echo "$tree: $(find "$dir" -type f | wc -l) files, $(tr -cd '\0' <"$list" | wc -c) of them programs and libraries that need others; $(nproc) processors"
	sort -k1,1 -k2,2n "$work/log" | awk -v tree="$tree" '
		$1 != last { last = $1; order[++k] = $1; wall[$1] = $2; cpu[$1] = $3 }
		$4 > memory[$1] { memory[$1] = $4 }
		function goal(text, value, limit, least) {
			good = least ? value >= limit : value <= limit
			printf "  %s: %.2f, goal %s %s: %s\n", text, value, least ? "at least" : "at most", limit, good ? "reached" : "MISSED"
			if (!good) missed = 1
		}
		END {
			for (i = 1; i <= k; i++) printf "  %-11s %8.3f s  processor %8.3f s  memory %4.0f MB\n", order[i], wall[order[i]], cpu[order[i]], memory[order[i]] / 1024
			# A small tree of large files is read in no time by anybody.
			goal("times as fast as ldd in a loop", wall["ldd_loop"] / wall["audit"], tree == "many" ? 10 : 5, 1)
			goal("times as fast as the loader in a loop", wall["loader_loop"] / wall["audit"], tree == "many" ? 4 : 1.5, 1)
			if (tree == "many") goal("seconds", wall["audit"], 5, 0)
			exit missed
		}' || missed=1
done
exit "$missed"
