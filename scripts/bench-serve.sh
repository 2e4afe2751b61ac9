#!/bin/bash
# The status page and the API under wrk while updates run at full speed beside them:
# requests a second, latency, and how long the update takes with and without them.
# The page is a daemon's, of a store with two nights in it; the update beside it is the
# whole job of the demo, on a root of its own. Rounds with and without requests take
# turns, so that what else the machine does counts for both; what is said is the median
# of ROUNDS, with the least and the most. wrk asks as fast as it is answered and takes
# a processor itself: on a machine with two, much of what the update loses is lost to wrk.
set -euo pipefail
shopt -s inherit_errexit
cd "$(dirname "$0")/.."
: "${GO:=go}" "${ROUNDS:=5}" "${CONNECTIONS:=32}" "${THREADS:=1}"

for tool in wrk curl; do
	command -v "$tool" >/dev/null || { echo "bench-serve: $tool is not installed (apt-get install $tool)" >&2; exit 1; }
done
work=$(mktemp -d "${TMPDIR:-/tmp}/bench-serve.XXXXXX")
children=()
cleanup() {
	for pid in "${children[@]}"; do kill "$pid" 2>/dev/null || true; done
	wait 2>/dev/null || true
	rm -rf "$work"
}
trap cleanup EXIT

CGO_ENABLED=0 "$GO" build -trimpath -o "$work/rocm-nightly" ./cmd/rocm-nightly
port=$((20000 + RANDOM % 20000))
TMPDIR=$work "$work/rocm-nightly" demo --dir "$work/shown" >"$work/demo.log" 2>&1 || { cat "$work/demo.log" >&2; exit 1; }
cat >"$work/config.yaml" <<CONF
root: $work/shown/root
installs: [{target: gfx1151}]
daemon: {check: "", catch_up: false}
schedule: "CRON_TZ=UTC 0 0 1 1 *"
serve: {listen: "127.0.0.1:$port"}
CONF
"$work/rocm-nightly" --config "$work/config.yaml" daemon >"$work/daemon.log" 2>&1 &
children+=($!)
url=http://127.0.0.1:$port
curl -sf -o /dev/null --retry 30 --retry-delay 1 --retry-connrefused "$url/healthz" ||
	{ echo "bench-serve: the page does not answer:" >&2; cat "$work/daemon.log" >&2; exit 1; }

# once: seconds of one whole job.
once() {
	local begun=$EPOCHREALTIME
	TMPDIR=$work "$work/rocm-nightly" demo >"$work/demo.log" 2>&1 || { cat "$work/demo.log" >&2; exit 1; }
	awk -v a="$begun" -v b="$EPOCHREALTIME" 'BEGIN { printf "%.3f\n", b - a }'
}
# told: the median of a file of seconds, with the least and the most.
told() { sort -n "$1" | awk '{ a[NR] = $1 } END { printf "%.3f s (%.3f to %.3f)", a[int((NR + 1) / 2)], a[1], a[NR] }'; }
# asked: one whole job while wrk asks; what wrk says is added to a file.
asked() {
	wrk -t "$THREADS" -c "$CONNECTIONS" -d 600s --latency -H 'Accept-Encoding: gzip' "$url$1" >"$work/wrk" 2>&1 &
	local load=$!
	children+=("$load")
	once
	kill -INT "$load"
	wait "$load" || true
	cat "$work/wrk" >>"$work/wrks"
}

once >/dev/null # warms the caches
for path in / /api/v1/state; do
	: >"$work/alone"
	: >"$work/beside"
	: >"$work/wrks"
	printf '\n%s with %s connections, an answer of %s bytes\n' "$path" "$CONNECTIONS" "$(curl -sf -H 'Accept-Encoding: gzip' "$url$path" | wc -c)"
	for ((i = 0; i < ROUNDS; i++)); do
		once >>"$work/alone"
		asked "$path" >>"$work/beside"
	done
	grep -E 'Requests/sec|^ +(50|99)%' "$work/wrks"
	if grep -E 'Non-2xx|Socket errors' "$work/wrks"; then
		echo "bench-serve: not every request was answered as it should be" >&2
		exit 1
	fi
	printf 'update alone:     %s\nupdate beside it: %s\n' "$(told "$work/alone")" "$(told "$work/beside")"
	awk -v a="$(told "$work/alone")" -v b="$(told "$work/beside")" 'BEGIN { printf "median:           %.2f times\n", b / a }'
done
