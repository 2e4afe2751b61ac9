#!/bin/bash
# One file from one nginx over TLS, HTTP/2 offered, downloaded by the package
# fetch, by curl and by aria2c with four connections, in turn and in one run:
# plainly, over a wire of 20 ms in each direction, with 20 MiB/s for each
# connection, and with both. Wall and CPU seconds of the client alone; below
# them the ratios. What fetch does is to write a spool, to read it back and to
# sync it; "+ hash" is with the SHA-256 of all of it, which for the others is
# sha256sum, beside curl and after aria2c.
set -euo pipefail
shopt -s inherit_errexit
cd "$(dirname "$0")/.."
: "${GO:=go}" "${ROUNDS:=3}" "${MIB:=1024}" "${SLOW_MIB:=512}" "${CONNECTIONS:=4}"
: "${WORK:=/dev/shm}" # a directory on the medium to write to
PATH=$PATH:/usr/sbin
unset https_proxy HTTPS_PROXY all_proxy ALL_PROXY

for tool in nginx curl aria2c openssl sha256sum; do
	command -v "$tool" >/dev/null || { echo "bench-fetch: $tool is not installed (apt-get install nginx-light curl aria2 openssl)" >&2; exit 1; }
done
[ -w "$WORK" ] || WORK=${TMPDIR:-/tmp}
work=$(mktemp -d "$WORK/bench-fetch.XXXXXX")
children=()
cleanup() {
	for pid in "${children[@]}"; do kill "$pid" 2>/dev/null || true; done
	wait 2>/dev/null || true
	rm -rf "$work"
}
trap cleanup EXIT
TIMEFORMAT='%R %U %S'

"$GO" test -c -tags bench -o "$work/versus" ./fetch

# One server that sends as fast as it can, one that limits each connection.
mkdir "$work/www"
make_file() { { printf '\037\213'; head -c $(($2 * 1048576 - 2)) /dev/urandom; } >"$work/www/$1"; }
make_file fast "$MIB"
make_file slow "$SLOW_MIB"
openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 -subj /CN=localhost \
	-addext 'subjectAltName=IP:127.0.0.1' -keyout "$work/key.pem" -out "$work/cert.pem" 2>/dev/null
export SSL_CERT_FILE=$work/cert.pem CURL_CA_BUNDLE=$work/cert.pem
port=$((20000 + RANDOM % 20000))
cat >"$work/nginx.conf" <<CONF
daemon off; pid $work/pid; error_log $work/error.log; worker_processes 2;
$([ "$(id -u)" != 0 ] || echo 'user root;')
events { worker_connections 256; }
http {
  access_log off; sendfile on; default_type application/gzip; root $work/www;
  client_body_temp_path $work/t1; proxy_temp_path $work/t2; fastcgi_temp_path $work/t3; uwsgi_temp_path $work/t4; scgi_temp_path $work/t5;
  ssl_certificate $work/cert.pem; ssl_certificate_key $work/key.pem; ssl_protocols TLSv1.2 TLSv1.3;
  server { listen 127.0.0.1:$port ssl http2; }
  server { listen 127.0.0.1:$((port + 1)) ssl http2; limit_rate 20m; }
}
CONF
nginx -p "$work" -c "$work/nginx.conf" &
children+=($!)
curl -s -o /dev/null --retry 20 --retry-delay 1 --retry-connrefused "https://127.0.0.1:$port/"

# proxy NAME LATENCY RATE: starts a wire to the fast server; its address is in $work/NAME.
proxy() {
	mkfifo "$work/$1.stdin"
	VERSUS_UPSTREAM=127.0.0.1:$port VERSUS_LATENCY=$2 VERSUS_RATE=$3 VERSUS_ADDRESS=$work/$1 \
		"$work/versus" -test.run '^TestVersusProxy$' <"$work/$1.stdin" >/dev/null &
	children+=($!)
	# shellcheck disable=SC2034 # it only has to stay open
	exec {held}>"$work/$1.stdin"
	until [ -s "$work/$1" ]; do read -rt 0.05 <> <(:) || true; done
}
proxy latency 20ms ''
proxy wire-rate '' $((20 << 20))
proxy both 20ms $((20 << 20))

ours() { VERSUS_URL=$1 VERSUS_SPOOL=$work/out/spool VERSUS_CONNECTIONS=$CONNECTIONS "$work/versus" -test.run '^TestVersusFetch$'; }
ours_hash() { VERSUS_HASH=1 ours "$1"; }
curl_2() { curl -sSf -o "$work/out/file" "$1"; }
curl_1() { curl -sSf --http1.1 -o "$work/out/file" "$1"; }
curl_hash() { curl -sSf "$1" | tee "$work/out/file" | sha256sum; }
aria() { aria2c -q -x "$CONNECTIONS" -s "$CONNECTIONS" -k 1M --file-allocation=none --ca-certificate="$work/cert.pem" -d "$work/out" -o file "$1"; }
aria_hash() { aria "$1" && sha256sum "$work/out/file"; }

# run TOOL URL: "wall user system" of the best of the rounds, by wall.
run() {
	local best='' t
	for _ in $(seq "$ROUNDS"); do
		rm -rf "$work/out"
		mkdir "$work/out"
		t=$({ time "$1" "$2" >/dev/null 2>"$work/stderr"; } 2>&1) || { cat "$work/stderr" >&2; return 1; }
		if [ -z "$best" ] || awk -v a="${t%% *}" -v b="${best%% *}" 'BEGIN { exit !(a < b) }'; then best=$t; fi
	done
	echo "$best"
}

# scene TITLE URL TOOL...: the first tool is ours, the others are compared with it.
scene() {
	local title=$1 url=$2 tool mine=''
	shift 2
	echo "$title"
	for tool in "$@"; do
		local t
		t=$(run "$tool" "$url")
		[ -n "$mine" ] || mine=$t
		awk -v n="$tool" -v t="$t" -v m="$mine" 'BEGIN {
			split(t, a, " "); split(m, b, " "); ca = a[2] + a[3]; cb = b[2] + b[3]
			printf "  %-10s wall %7.2f s   cpu %6.2f s   ours/this: wall %.2f cpu %.2f\n", n, a[1], ca, b[1]/a[1], (ca > 0 ? cb/ca : 0) }'
	done
}

fast() {
	scene "plain, $MIB MiB" "https://127.0.0.1:$port/fast" "$@"
	scene "20 ms each way, $MIB MiB" "https://$(cat "$work/latency")/fast" "$@"
}
slow() {
	scene "20 MiB/s each connection, by the wire, $SLOW_MIB MiB" "https://$(cat "$work/wire-rate")/slow" "$@"
	scene "20 MiB/s each connection, by nginx, $SLOW_MIB MiB" "https://127.0.0.1:$((port + 1))/slow" "$@"
	scene "20 ms and 20 MiB/s, $SLOW_MIB MiB" "https://$(cat "$work/both")/slow" "$@"
}
fast ours curl_2 curl_1 aria
slow ours curl_2 aria
echo '+ hash'
fast ours_hash curl_hash aria_hash
slow ours_hash aria_hash
