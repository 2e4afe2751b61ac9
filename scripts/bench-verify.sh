#!/bin/bash
# verify against what people do instead, sha256sum on all processors, on the prefix
# that the corpus becomes and on 30,000 small files, with an empty page cache (as
# root) and with a warm one. verify reads modes, times, links and names, too, and
# compares. Figures drift from machine to machine; the ratios hold.
#
#   scripts/bench-verify.sh    ROUNDS=3; WORK=a directory on the disk to write to
set -euo pipefail
shopt -s inherit_errexit
export LC_ALL=C
cd "$(dirname "$0")/.."
: "${GO:=go}" "${ROUNDS:=3}"

die() { echo "bench-verify: $*" >&2; exit 1; }
command -v /usr/bin/time >/dev/null || die "/usr/bin/time is missing: apt-get install time"
tarball=$(./scripts/corpus.sh | tail -n 1)
work=$(mktemp -d ${WORK:+-p "$WORK"})
trap 'chmod -R u+w "$work"; rm -rf "$work"' EXIT
CGO_ENABLED=0 "$GO" build -o "$work/rocm-nightly" ./cmd/rocm-nightly
: >"$work/config.yaml"

# The two trees, as generations of two stores.
corpus=$work/roots/corpus/slots/nightly-gfx1036/generations/10.2.0a20260930
small=$work/roots/small/slots/nightly-gfx1036/generations/10.2.0a20260930
mkdir -p "${corpus%/*}" "$small"
"$work/rocm-nightly" repack "$tarball" --prefix "$corpus" --arch gfx1036 --progress none >/dev/null
for d in $(seq 300); do
	mkdir -p "$small/many/$d"
	head -c 330000 /dev/urandom | split -b 3300 -d -a 3 - "$small/many/$d/file"
done
find "$small/many" -type f -exec chmod 444 {} + -exec touch -d @1790000000 {} +
(
	cd "$small"
	join -t ' ' -j 1 <(find many -type f -print0 | xargs -0 sha256sum | awk '{ print $2, $1 }' | sort) <(find many -type f -printf '%p %s\n' | sort) |
		awk '{ printf "{\"path\":\"%s\",\"kind\":\"file\",\"mode\":\"0444\",\"size\":%d,\"mtime\":1790000000,\"sha256\":\"%s\"}\n", $1, $3, $2 }' >"$work/files"
	find many -type d -printf '{"path":"%p","kind":"dir","mode":"0755","mtime":1790000000}\n' >>"$work/files"
	# By path, which is the first field.
	sort -t '"' -k 4,4 "$work/files" >files.jsonl
	echo '{"schema":1,"digest":"","recipe":"","ruleset":2,"options":{},"counts":{"files":0,"dirs":0,"symlinks":0,"bytes":0,"elf":0},"edits":{}}' >manifest.json
	chmod 444 files.jsonl manifest.json
)
sync -f "$work"

full() { "$work/rocm-nightly" --config "$work/config.yaml" --root "$work/roots/$tree" verify --progress none; }
fast() { "$work/rocm-nightly" --config "$work/config.yaml" --root "$work/roots/$tree" verify --fast --progress none; }
sums() { find "$dir" -type f -print0 | xargs -0 -P "$(nproc)" -n 64 sha256sum; }
export work
export -f full fast sums

# measure NAME CACHE: one run; appends name, cache, wall and processor seconds and KiB.
measure() {
	local begin end user system memory
	if [ "$2" = cold ]; then
		sync -f "$work"
		echo 3 >/proc/sys/vm/drop_caches
	fi
	begin=$(date +%s%N)
	/usr/bin/time -f '%U %S %M' -o "$work/time" bash -c "set -e; $1" >"$work/output" 2>&1 ||
		{ tail -n 3 "$work/output" >&2; die "failed: $1"; }
	end=$(date +%s%N)
	read -r user system memory < <(tail -n 1 "$work/time")
	awk -v n="$1" -v c="$2" -v ns=$((end - begin)) -v u="$user" -v s="$system" -v m="$memory" 'BEGIN { print c, n, ns / 1e9, u + s, m }' >>"$work/log"
}

caches="warm"
if [ -w /proc/sys/vm/drop_caches ]; then caches="warm cold"; else echo "bench-verify: only root can empty the page cache: warm runs alone"; fi
missed=0
for tree in corpus small; do
	dir=$corpus
	[ "$tree" = corpus ] || dir=$small
	export tree dir
	: >"$work/log"
	full >/dev/null # makes the seal, and warms the cache
	sums >/dev/null
	for cache in $caches; do
		for _ in $(seq "$ROUNDS"); do
			for name in full sums fast; do measure "$name" "$cache"; done
		done
	done
	echo "$tree: $(find "$dir" -type f | wc -l) files, $(du -sb "$dir" | cut -f 1) bytes; $(nproc) processors"
	sort -k1,1 -k2,2 -k3,3n "$work/log" | awk '
		BEGIN { label["full"] = "verify"; label["fast"] = "verify --fast"; label["sums"] = "sha256sum" }
		{ key = $1 SUBSEP $2 }
		!(key in wall) { wall[key] = $3; cpu[key] = $4; caches[$1] = 1 }
		$5 > memory[key] { memory[key] = $5 }
		END {
			for (c in caches) {
				for (i = split("full fast sums", names, " "); i > 0; i--) {
					key = c SUBSEP names[i]
					printf "  %s  %-13s %7.3f s  processor %7.3f s  memory %4.0f MB\n", c, label[names[i]], wall[key], cpu[key], memory[key] / 1024
				}
				ratio = wall[c, "full"] / wall[c, "sums"]
				printf "  %s: the time of sha256sum: %.2f, goal at most 1.5: %s\n", c, ratio, ratio <= 1.5 ? "reached" : "MISSED"
				if (ratio > 1.5) missed = 1
			}
			exit missed
		}' || missed=1
done
exit "$missed"
