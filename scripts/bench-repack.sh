#!/bin/bash
# The whole of repack, on the corpus, against tar alone and against what
# packagers' scripts do, in turn and in one run: wall seconds with sync, processor
# seconds, megabytes of memory at most, and how much was written for each byte
# of what is there then. Figures drift from machine to machine; the ratios hold.
#
#   scripts/bench-repack.sh    ROUNDS=3, of 8 GB each; WORK=a directory on the disk to write to
set -euo pipefail
shopt -s inherit_errexit
export LC_ALL=C
cd "$(dirname "$0")/.."
: "${GO:=go}" "${ROUNDS:=3}"

die() { echo "bench-repack: $*" >&2; exit 1; }
for tool in patchelf:patchelf /usr/bin/time:time; do
	command -v "${tool%%:*}" >/dev/null || die "${tool%%:*} is missing: apt-get install ${tool#*:}"
done
tarball=$(./scripts/corpus.sh | tail -n 1)
out=""
work=$(mktemp -d ${WORK:+-p "$WORK"})
trap 'rm -rf "$work"' EXIT
CGO_ENABLED=0 "$GO" build -o "$work/rocm-nightly" ./cmd/rocm-nightly

ours() { "$work/rocm-nightly" repack "$tarball" --prefix "$out" --progress none; }
plain_tar() { mkdir "$out" && tar xzf "$tarball" -C "$out"; }

# shell_road is what packagers' scripts do: verify, unpack, copy, patch each
# file with patchelf, write wrappers.
shell_road() {
	mkdir "$out" "$out/source"
	sha256sum "$tarball"
	tar xzf "$tarball" -C "$out/source"
	mkdir -p "$out/opt" "$out/bin"
	cp -a "$out/source" "$out/opt/rocm"
	find "$out/opt/rocm" -type f | while read -r f; do
		case $(head -c 4 "$f" | tr -d '\0') in
		'#!'*) sed -i '1s|^#!.*/python[0-9.]*$|#!/usr/bin/env python3|' "$f" ;;
		$'\x7fELF') patchelf --set-rpath '$ORIGIN:$ORIGIN/../lib:$ORIGIN/../lib/llvm/lib:$ORIGIN/../lib/rocm_sysdeps/lib' "$f" || true ;;
		esac
	done
	for f in "$out/opt/rocm/bin/"*; do
		printf '#!/bin/sh\nexec %s "$@"\n' "$f" >"$out/bin/${f##*/}"
	done
	chmod +x "$out/bin/"*
}

export tarball work out
export -f ours plain_tar shell_road

# written FIELD: bytes that this shell and the children that it waited for have
# written (wchar), or made dirty in the page cache of a disk (write_bytes). What is
# written by mmap, and the file system's own records, are in the second only.
written() { sed -n "s/^$1: //p" "/proc/$$/io"; }

# content prints the bytes of the regular files of a tree, each once.
content() { find "$1" -type f -printf '%i %s\n' | sort -u | awk '{ n += $2 } END { printf "%d\n", n }'; }

# measure NAME: one run with a warm page cache, sync included. It appends to the
# log: name, wall and processor seconds, KiB of memory of the largest process,
# bytes written and made dirty, bytes of content.
measure() {
	local begin end calls dirty user system memory
	# A new directory each time, and nothing is deleted before the end: for
	# minutes after that ext4 is slow to make files.
	out=$(mktemp -d -u "$work/$1-XXXXXX")
	sync -f "$work"
	calls=$(written wchar) dirty=$(written write_bytes)
	begin=$(date +%s%N)
	/usr/bin/time -f '%U %S %M' -o "$work/time" bash -c "set -e; $1" >"$work/output" 2>&1 ||
		{ tail -n 3 "$work/output" >&2; die "failed: $1"; }
	sync -f "$work"
	end=$(date +%s%N)
	calls=$(($(written wchar) - calls)) dirty=$(($(written write_bytes) - dirty))
	read -r user system memory < <(tail -n 1 "$work/time")
	awk -v name="$1" -v ns=$((end - begin)) -v u="$user" -v s="$system" 'BEGIN { printf "%s %.3f %.2f ", name, ns/1e9, u+s }' >>"$work/log"
	echo "$memory $calls $dirty $(content "$out")" >>"$work/log"
}

cat "$tarball" >/dev/null
for _ in $(seq "$ROUNDS"); do
	for name in ours plain_tar shell_road; do measure "$name"; done
done

echo "$(wc -c <"$tarball") bytes; $(nproc) processors; $ROUNDS rounds"
sort -k1,1 -k2,2n "$work/log" | awk '
	BEGIN { label["ours"] = "repack"; label["plain_tar"] = "tar xzf"; label["shell_road"] = "shell road" }
	$1 != last { last = $1; order[++k] = $1; wall[$1] = $2; cpu[$1] = $3 }
	{ rounds[$1, ++count[$1]] = $2; if ($4 > memory[$1]) memory[$1] = $4; calls[$1] = $5; dirty[$1] = $6; content[$1] = $7 }
	function goal(text, value, limit, least) {
		good = least ? value >= limit : value <= limit
		printf "  %s: %.2f, goal %s %s: %s\n", text, value, least ? "at least" : "at most", limit, good ? "reached" : "MISSED"
		if (!good) missed = 1
	}
	END {
		for (i = 1; i <= k; i++) {
			name = order[i]
			printf "%-10s best %6.2f s  median %6.2f s  processor %6.2f s  memory %4.0f MB  written %6.0f MB, dirty %6.0f MB, content %6.0f MB\n", label[name],
				wall[name], rounds[name, int((count[name] + 1) / 2)], cpu[name], memory[name] / 1024, calls[name] / 1e6, dirty[name] / 1e6, content[name] / 1e6
		}
		goal("times as fast as tar xzf", wall["plain_tar"] / wall["ours"], 2, 1)
		goal("times as fast as the shell road", wall["shell_road"] / wall["ours"], 6, 1)
		goal("MB of memory", memory["ours"] / 1024, 256, 0)
		# wchar does not know of a mapping, and dirty nothing on a tmpfs.
		most = dirty["ours"] > calls["ours"] ? dirty["ours"] : calls["ours"]
		goal("bytes written for each of content", most / content["ours"], 1.03, 0)
		exit missed
	}'
