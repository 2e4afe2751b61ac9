#!/bin/bash
# The corpus, decompressed from the page cache to nowhere, on 1, 2, 4 ... cores
# of this machine: by pgunzip, by the Go packages of klauspost and of the standard
# library, and by gzip, pigz, igzip and libdeflate, in turn and in one run. Wall seconds
# (best and median), MB/s of output, processor seconds, megabytes of memory;
# below them the ratios. Figures drift from machine to machine; the ratios hold.
#
#   scripts/bench-unpack.sh [FILE.gz]    ROUNDS=3, CORES="1 2"
set -euo pipefail
shopt -s inherit_errexit
export LC_ALL=C
cd "$(dirname "$0")/.."
: "${GO:=go}" "${ROUNDS:=3}"

die() { echo "bench-unpack: $*" >&2; exit 1; }
[ -x /usr/bin/time ] || die "/usr/bin/time is missing: apt-get install time"
tarball=${1:-$(./scripts/corpus.sh | tail -n 1)}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
CGO_ENABLED=0 "$GO" test -c -tags bench -o "$work/go" ./unpack/pgunzip

# The cores that this may run on, one a line, and how many of them to use.
cpus=$(taskset -cp $$ | sed 's/.*: //' | tr , '\n' | while IFS=- read -r a b; do seq "$a" "${b:-$a}"; done)
have=$(wc -l <<<"$cpus")
if [ -z "${CORES:-}" ]; then
	CORES=1
	for ((n = 2; n <= have; n *= 2)); do CORES+=" $n"; done
fi

chore=("$work/go" -test.run '^TestBenchChore$' -file "$tarball")
declare -A commands=(
	[gzip]="gzip -dc" [pigz]="pigz -dc" [igzip]="igzip -dc" [libdeflate]="libdeflate-gunzip -c"
)
names=(pgunzip klauspost std gzip pigz igzip libdeflate)
for name in "${!commands[@]}"; do
	command -v "${commands[$name]%% *}" >/dev/null && continue
	echo "bench-unpack: ${commands[$name]%% *} is not installed (apt-get install pigz isal libdeflate-tools): left out" >&2
	unset "commands[$name]"
done

# once NAME CORES: runs one on the first CORES of the cores, and appends "NAME WALL PROCESSOR KIB" to the log, in seconds.
once() {
	local begin end list command
	list=$(head -n "$2" <<<"$cpus" | paste -sd,)
	case $1 in
	pgunzip-*) command=("${chore[@]}" -decoder pgunzip -workers "${1#*-}") ;;
	pgunzip | klauspost | std) command=("${chore[@]}" -decoder "$1") ;;
	*) read -ra command <<<"${commands[$1]} $tarball" ;;
	esac
	begin=$(date +%s%N)
	taskset -c "$list" /usr/bin/time -f '%U %S %M' -o "$work/time" "${command[@]}" >/dev/null || die "failed: ${command[*]}"
	end=$(date +%s%N)
	read -r user system memory <"$work/time"
	awk -v name="$1" -v ns=$((end - begin)) -v u="$user" -v s="$system" -v m="$memory" 'BEGIN { print name, ns/1e9, u+s, m }' >>"$work/log"
}

cat "$tarball" >/dev/null
# The content's size, from one pass of the reference.
size=$(gzip -dc "$tarball" | wc -c)
echo "$(wc -c <"$tarball") bytes, $size decompressed; $(nproc) processors; $ROUNDS rounds"
fail=0
for n in $CORES; do
	: >"$work/log"
	these=()
	for name in "${names[@]}"; do
		case $name in
		klauspost | std) ;;
		pgunzip) [ "$n" = 1 ] || these+=("pgunzip-$n") ;; # what it chooses, and one worker for each core
		*) [ -n "${commands[$name]:-}" ] || continue ;;
		esac
		these+=("$name")
	done
	for _ in $(seq "$ROUNDS"); do
		for name in "${these[@]}"; do once "$name" "$n"; done
	done
	echo "on $n core(s):"
	sort -k1,1 -k2,2n "$work/log" | awk -v size="$size" -v cores="$n" '
		$1 != last { last = $1; order[++k] = $1; count[$1] = 0; cpu[$1] = $3 }
		{ wall[$1, ++count[$1]] = $2; if ($3 < cpu[$1]) cpu[$1] = $3; if ($4 > memory[$1]) memory[$1] = $4 }
		# best is of the rounds, which are sorted by it.
		function best(name) { return wall[name, 1] }
		# against says how many times as fast as NAME, and whether that is enough.
		function against(name, goal,   ratio) {
			if (!(name in count)) return
			ratio = best(name) / best("pgunzip")
			printf "  pgunzip is %.2f times as fast as %s (processor time: %.2f)", ratio, name, cpu[name] / cpu["pgunzip"]
			if (goal) { printf ", goal %.1f: %s", goal, (ratio >= goal ? "reached" : "MISSED"); if (ratio < goal) missed = 1 }
			printf "\n"
		}
		END {
			for (i = 1; i <= k; i++) {
				name = order[i]
				printf "  %-12s best %6.2f s  median %6.2f s  %6.0f MB/s  processor %6.2f s  memory %4.0f MB\n",
					name, best(name), wall[name, int((count[name] + 1) / 2)], size / best(name) / 1e6, cpu[name], memory[name] / 1024
			}
			against("klauspost", cores == 1 ? 2 : 0)
			against("std", 0); against("gzip", 0); against("pigz", 0)
			against("igzip", cores == 1 ? 0.7 : 0)
			against("libdeflate", 0)
			against("pgunzip-" cores, 0)
			exit missed }' || fail=1
done
exit "$fail"
