#!/bin/bash
# The status page and the API under wrk while updates run at full speed beside them:
# requests a second, latency, and how long the update takes with and without them.
# The update is the whole job of the demo, in a loop; the page is a daemon's
# on a root of its own. wrk asks as fast as it is answered and takes a processor
# itself: on a machine with two, much of what the update loses is lost to wrk.
set -euo pipefail
shopt -s inherit_errexit
cd "$(dirname "$0")/.."
: "${GO:=go}" "${ROUNDS:=3}" "${CONNECTIONS:=32}" "${THREADS:=1}"

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
cat >"$work/config.yaml" <<CONF
root: $work/root
installs: [{target: gfx1151}]
daemon: {check: "", catch_up: false}
schedule: "CRON_TZ=UTC 0 0 1 1 *"
serve: {listen: "127.0.0.1:$port"}
CONF
mkdir "$work/root"
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
# best: the least of ROUNDS of them.
best() { for ((i = 0; i < ROUNDS; i++)); do once; done | sort -n | head -n 1; }

once >/dev/null # warms the caches
quiet=$(best)
printf 'update alone: %s s\n' "$quiet"
for path in / /api/v1/state; do
	wrk -t "$THREADS" -c "$CONNECTIONS" -d 600s --latency -H 'Accept-Encoding: gzip' "$url$path" >"$work/wrk" 2>&1 &
	load=$!
	children+=("$load")
	busy=$(best)
	kill -INT "$load"
	wait "$load" || true
	printf '\n%s with %s connections\n' "$path" "$CONNECTIONS"
	grep -E 'Requests/sec|50%|99%|Non-2xx|Socket errors' "$work/wrk"
	awk -v a="$quiet" -v b="$busy" 'BEGIN { printf "update beside it: %.3f s, %.2f times\n", b, b / a }'
done
