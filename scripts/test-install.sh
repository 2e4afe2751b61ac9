#!/bin/bash
# Installs rocm-nightly into a fresh Debian that is booted with systemd, and looks
# whether its units do there what they promise, inside their walls: the timers, the
# updates and the daemon as their own user, the link, the credentials, what only
# privilege can see, and a purge that leaves nothing.
#
#   ./scripts/test-install.sh [PACKAGE.deb | PROGRAM]
#
# Without a package the program (default: this tree's) and the units are copied to where
# a package has them.
# It needs root, debootstrap, systemd-nspawn (systemd-container) and python3. Exit 77:
# that is not here.
set -euo pipefail
cd "$(dirname "$0")/.."
: "${GO:=go}"
deb="" program=""
case ${1:-} in
*.deb) deb=$1 ;;
*) program=${1:-} ;;
esac

for tool in debootstrap systemd-nspawn nsenter python3; do
	command -v "$tool" >/dev/null 2>&1 || {
		echo "test-install: $tool is missing: not tested" >&2
		exit 77
	}
done
if [ "$(id -u)" != 0 ]; then
	echo "test-install: only root can boot a container: not tested" >&2
	exit 77
fi

work=$(mktemp -d)
root=$work/root
leader=
nspawn=
index=
cleanup() {
	[ -z "$index" ] || kill "$index" 2>/dev/null || true
	if [ -n "$nspawn" ]; then
		# Twice: ask, then insist.
		kill "$nspawn" 2>/dev/null || true
		kill "$nspawn" 2>/dev/null || true
		# A first process that waits for one of ours never ends: then by force.
		for _ in $(seq 100); do
			kill -0 "$nspawn" 2>/dev/null || break
			sleep 0.2
		done
		kill -KILL "$nspawn" ${leader:+"$leader"} 2>/dev/null || true
		wait "$nspawn" 2>/dev/null || true
	fi
	rm -rf "$work"
}
trap cleanup EXIT

step() { echo "test-install: $*"; }
fail() {
	echo "test-install: FAILED: $*" >&2
	[ -z "$leader" ] || inside journalctl --no-pager -o short-monotonic -n 60 -u 'rocm-nightly*' >&2 || true
	exit 1
}
inside() { nsenter -t "$leader" -m -u -i -n -p -- /usr/bin/env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LC_ALL=C.UTF-8 "$@"; }
# As `sudo -u rocm-nightly` does it.
service() { inside setpriv --reuid=rocm-nightly --regid=rocm-nightly --clear-groups env HOME=/ rocm-nightly "$@"; }
nobody() { inside setpriv --reuid=65534 --regid=65534 --clear-groups env HOME=/nonexistent "$@"; }
show() { inside systemctl show --value -p "$2" "$1"; }
is() { [ "$2" = "$3" ] || fail "$1 is \"$2\", not \"$3\""; }
# until what, command: within half a minute.
until_true() {
	local what=$1
	shift
	for _ in $(seq 150); do
		if "$@" >/dev/null 2>&1; then return 0; fi
		sleep 0.2
	done
	fail "$what did not come to pass"
}

step "a Debian, the program, and three nights"
base=$(./scripts/debootstrap.sh)
cp -a --reflink=auto "$base" "$root"
if [ -z "$deb$program" ]; then
	program=$work/rocm-nightly
	CGO_ENABLED=0 "$GO" build -trimpath -o "$program" ./cmd/rocm-nightly
fi
mkdir "$work/nights" "$work/index"
versions=()
for ago in 3 2 1; do versions+=("10.2.0a$(date -u -d "$ago days ago" +%Y%m%d)"); done
mapfile -t nights < <("$GO" run ./internal/demo/mkcorpus night "$work/nights" "${versions[@]}")
publish() { cp -p "${nights[$1]}" "$work/index/"; }

install_copies() {
	install -m755 "$program" "$root/usr/bin/rocm-nightly"
	install -m644 -t "$root/usr/lib/systemd/system" systemd/*.service systemd/*.socket systemd/*.timer
	install -m644 -t "$root/usr/lib/systemd/user" systemd/user/*
	install -m644 -t "$root/usr/lib/sysusers.d" systemd/sysusers.d/*
	install -m644 -t "$root/usr/lib/tmpfiles.d" systemd/tmpfiles.d/*
	mkdir -p "$root/etc/rocm-nightly/config.d"
	install -m644 config.yaml "$root/etc/rocm-nightly/config.yaml"
}
remove_copies() {
	inside systemctl disable -q --now rocm-nightly.service rocm-nightly.socket rocm-nightly-update.timer rocm-nightly-check.timer rocm-nightly-prune.timer
	for f in systemd/*.service systemd/*.socket systemd/*.timer; do rm "$root/usr/lib/systemd/system/${f##*/}"; done
	for f in systemd/user/*; do rm "$root/usr/lib/systemd/user/${f##*/}"; done
	rm -r "$root/usr/lib/sysusers.d/rocm-nightly.conf" "$root/usr/lib/tmpfiles.d/rocm-nightly.conf" "$root/usr/bin/rocm-nightly" "$root/etc/rocm-nightly"
	rm -rf "$root/var/lib/rocm-nightly" "$root/var/cache/rocm-nightly" "$root/opt/rocm" "$root/etc/tmpfiles.d/rocm-nightly-link.conf" \
		"$root"/var/lib/systemd/timers/stamp-rocm-nightly-*
	inside rm -rf /run/rocm-nightly
	inside systemctl daemon-reload
	inside userdel rocm-nightly
}

step "boot"
echo container >"$root/etc/hostname"
# The one hierarchy of cgroups, also where the host still has the old ones beside it.
# A container may not make cages unless it is told so; a machine may.
SYSTEMD_NSPAWN_UNIFIED_HIERARCHY=1 systemd-nspawn -q -D "$root" --boot --register=no --keep-unit \
	--system-call-filter="landlock_create_ruleset landlock_add_rule landlock_restrict_self" \
	--private-network --console=read-only >"$work/console" 2>&1 </dev/null &
nspawn=$!
for _ in $(seq 150); do
	leader=$(pgrep -P "$nspawn" | head -n 1 || true)
	[ -n "$leader" ] && [ -S "/proc/$leader/root/run/systemd/private" ] && break
	kill -0 "$nspawn" 2>/dev/null || {
		cat "$work/console" >&2
		echo "test-install: no container can be booted here: not tested" >&2
		exit 77
	}
	sleep 0.2
done
state=$(inside timeout 60 systemctl is-system-running --wait || true)
case $state in running | degraded) ;; *) fail "the machine is $state" ;; esac
before=$(inside find / /run -xdev \( -name '*rocm-nightly*' -o -name 'rocm' \) -not -path '/proc/*' | sort)
if [ -n "$deb" ]; then
	install -m644 "$deb" "$root/root/rocm-nightly.deb"
	inside dpkg -i /root/rocm-nightly.deb
else
	install_copies
	inside systemd-sysusers
	inside systemctl daemon-reload
fi
inside id rocm-nightly >/dev/null || fail "there is no user rocm-nightly"
inside systemctl is-enabled -q rocm-nightly.service && fail "the daemon was enabled by the installation"

step "units"
for u in "$root"/usr/lib/systemd/system/rocm-nightly*; do
	out=$(inside systemd-analyze verify --man=no "/usr/lib/systemd/system/${u##*/}" 2>&1) || fail "verify ${u##*/}: $out"
	[ -z "$out" ] || fail "verify ${u##*/}: $out"
done
for u in "$root"/usr/lib/systemd/system/rocm-nightly*.service; do
	inside systemd-analyze security --no-pager --threshold=20 "${u##*/}" >"$work/security" || fail "security: $(cat "$work/security")"
	step "  $(tail -n 1 "$work/security")"
done

step "an index, the config, a link and secrets"
nsenter -t "$leader" -n python3 -m http.server --bind 127.0.0.1 --directory "$work/index" 8000 >"$work/requests" 2>&1 &
index=$!
until_true "the index" inside bash -c ": </dev/tcp/127.0.0.1/8000"
publish 0
mkdir -p "$root/etc/rocm-nightly/config.d" "$root/etc/credstore"
cat >"$root/etc/rocm-nightly/config.d/test.yaml" <<CONFIG
channels: {nightly: {indexes: [{url: "http://127.0.0.1:8000/"}]}}
installs: [{target: gfx1151, link: /opt/rocm}]
policy: {settle: 0s}
keep: {last: 2}
health: {smoke: "off", command: [/usr/bin/id], timeout: 30s}
serve: {listen: systemd, token_credential: page_token}
metrics: {textfile: /srv/textfile/rocm-nightly.prom}
CONFIG
# A directory that is not the service's own: docs/metrics.md tells what it takes.
inside install -d -o rocm-nightly -g rocm-nightly /srv/textfile
mkdir -p "$root/etc/systemd/system/rocm-nightly-update.service.d"
printf '[Service]\nReadWritePaths=-/srv/textfile\n' >"$root/etc/systemd/system/rocm-nightly-update.service.d/test.conf"
inside systemctl daemon-reload
(umask 077 && echo a-secret-of-thirty-two-characters >"$root/etc/credstore/page_token")
sed -n 's/^#L /L /p' "$root/usr/lib/tmpfiles.d/rocm-nightly.conf" >"$root/etc/tmpfiles.d/rocm-nightly-link.conf"
inside systemd-tmpfiles --create rocm-nightly-link.conf
link=$(inside readlink /opt/rocm)
is "the link" "$link" /var/lib/rocm-nightly/slots/nightly-gfx1151/current

step "the update, as its own user"
inside systemctl start rocm-nightly-update.service || fail "the update failed"
slot=$root/var/lib/rocm-nightly/slots/nightly-gfx1151
is "the active night" "$(readlink "$slot/current")" "generations/${versions[0]}"
is "the owner" "$(inside stat -c %U:%G /var/lib/rocm-nightly/slots/nightly-gfx1151/generations/"${versions[0]}")" rocm-nightly:rocm-nightly
is "the owner of the config" "$(inside stat -c %U /etc/rocm-nightly)" root
inside test -d /opt/rocm/bin || fail "/opt/rocm leads nowhere"
# Everybody may use it.
nobody test -r /opt/rocm/.info/version || fail "others cannot read it"
nobody rocm-nightly env gfx1151 >"$work/env" || fail "others cannot ask for its environment"

inside grep -q '^rocm_nightly_slot_info{.*gfx1151' /srv/textfile/rocm-nightly.prom || fail "the update left no numbers"

step "the look, as its own user"
inside systemctl start rocm-nightly-check.service || fail "the look failed"

step "the timers"
inside systemctl enable -q --now rocm-nightly-update.timer rocm-nightly-check.timer rocm-nightly-prune.timer
timers=$(inside systemctl list-timers --all --no-legend)
for t in update check prune; do
	[[ $timers == *rocm-nightly-$t.timer* ]] || fail "rocm-nightly-$t.timer is not listed"
done

step "the daemon, with a watchdog that bites soon"
mkdir -p "$root/etc/systemd/system/rocm-nightly.service.d"
printf '[Service]\nWatchdogSec=4s\nRestartSec=1s\n' >"$root/etc/systemd/system/rocm-nightly.service.d/test.conf"
inside systemctl daemon-reload
inside systemctl start rocm-nightly.socket
inside systemctl start rocm-nightly.service || fail "the daemon did not start"
is "the daemon" "$(show rocm-nightly.service ActiveState)" active
is "the timer beside the daemon" "$(show rocm-nightly-update.timer ActiveState)" inactive
is "the timer of looks beside the daemon" "$(show rocm-nightly-check.timer ActiveState)" inactive
is "the timer of prune" "$(show rocm-nightly-prune.timer ActiveState)" active
[ -n "$(show rocm-nightly.service StatusText)" ] || fail "the daemon says nothing in STATUS="
step "  STATUS=$(show rocm-nightly.service StatusText)"
pid=$(show rocm-nightly.service MainPID)
is "its user" "$(inside stat -c %U "/proc/$pid")" rocm-nightly
inside grep -E '^Cap(Inh|Prm|Eff|Bnd|Amb):' "/proc/$pid/status" >"$work/caps"
grep -v '0000000000000000$' "$work/caps" && fail "the daemon has capabilities"
inside grep -q '^NoNewPrivs:[[:space:]]*1' "/proc/$pid/status" || fail "the daemon may get privileges"
is "its secret" "$(inside stat -c %a /run/credentials/rocm-nightly.service/page_token)" 400
grep -qa thirty-two "/proc/$leader/root/proc/$pid/environ" && fail "a secret is in the environment"
inside systemctl reload rocm-nightly.service || fail "reload"
is "after SIGHUP" "$(show rocm-nightly.service MainPID)" "$pid"
is "after SIGHUP it" "$(show rocm-nightly.service ActiveState)" active

step "the page, on the socket that systemd holds"
is "the socket's owner and mode" "$(inside stat -c '%U:%G %a' /run/rocm-nightly/page.sock)" "rocm-nightly:rocm-nightly 660"
page() {
	python3 - "/proc/$leader/root/run/rocm-nightly/page.sock" "$1" <<'PYTHON'
import http.client, socket, sys
c = http.client.HTTPConnection("localhost", timeout=20)
c.sock = socket.socket(socket.AF_UNIX)
c.sock.connect(sys.argv[1])
c.request("GET", sys.argv[2])
r = c.getresponse()
text = r.read().decode()
print(text)
sys.exit(r.status != 200)
PYTHON
}
page / >"$work/page" || fail "the page: $(head -n 3 "$work/page")"
grep -q "${versions[0]}" "$work/page" || fail "the page does not know what is installed"
page /healthz >/dev/null || fail "/healthz"
page /metrics >"$work/page" || fail "/metrics"
grep -q '^rocm_nightly_slot_info{' "$work/page" || fail "/metrics has no slot"

step "a new night, updated beside the daemon, while somebody uses the old one"
publish 1
old=/var/lib/rocm-nightly/slots/nightly-gfx1151/generations/${versions[0]}
nobody sh -c "exec 7<$old/manifest.json && exec sleep 600" &
user=$!
inside systemctl start rocm-nightly-update.service || fail "the second update failed"
is "the active night" "$(readlink "$slot/current")" "generations/${versions[1]}"
service status >/dev/null || fail "status as the service's user"

step "rollback as the service's user, without saying where"
service rollback gfx1151 >/dev/null 2>&1 || fail "rollback as the service's user"
is "the active night" "$(readlink "$slot/current")" "generations/${versions[0]}"
service rollback gfx1151 >/dev/null 2>&1 || service use gfx1151 "${versions[1]}" >/dev/null 2>&1 || fail "and forth"
is "the active night" "$(readlink "$slot/current")" "generations/${versions[1]}"

is "what somebody uses, after an update" "$(inside test -d "$old" && echo there)" there
step "prune sees whose a night is that could go"
publish 2
inside systemctl start rocm-nightly-update.service || fail "the third update failed"
inside systemctl start rocm-nightly-prune.service || true # what it cannot know of a container is said
inside test -d "$old" || fail "what somebody uses was removed"
said=$(inside journalctl --no-pager -o cat -u rocm-nightly-prune.service)
[[ $said == *"${versions[0]} stays"*sleep* ]] || fail "prune does not know who uses it: $said"
kill "$user"
wait "$user" 2>/dev/null || true

step "the watchdog was fed all the while"
for _ in $(seq 60); do
	is "the daemon" "$(show rocm-nightly.service MainPID)" "$pid"
	began=$(show rocm-nightly.service ActiveEnterTimestampMonotonic)
	[ "$(awk -v b="$began" '{print ($1*1000000-b > 9000000)}' /proc/uptime)" = 1 ] && break
	sleep 0.2
done
step "a daemon that stands still is ended, tells why, and begins again"
reborn() {
	local now
	now=$(show rocm-nightly.service MainPID)
	[ "$now" != 0 ] && [ "$now" != "$pid" ] && [ "$(show rocm-nightly.service ActiveState)" = active ]
}
inside sh -c "kill -STOP $pid"
until_true "a new daemon" reborn
# Into a file: a grep that has seen enough would end journalctl with a failure.
inside journalctl --no-pager -o cat -u rocm-nightly.service >"$work/journal"
grep -q '^goroutine ' "$work/journal" || fail "what the goroutines did is not in the journal"

step "SIGTERM"
inside systemctl stop rocm-nightly.service || fail "stop"
is "how the daemon ended" "$(show rocm-nightly.service Result)" success

step "removal"
# What this script has laid down, and not the service.
rm -rf "$root"/etc/systemd/system/rocm-nightly*.service.d "$root/etc/credstore" "$root/srv/textfile" "$root/root/rocm-nightly.deb"
if [ -n "$deb" ]; then
	inside dpkg --purge rocm-nightly || fail "purge"
else
	remove_copies
fi
after=$(inside find / /run -xdev \( -name '*rocm-nightly*' -o -name 'rocm' \) -not -path '/proc/*' | sort)
is "what is left" "$after" "$before"
inside getent passwd rocm-nightly && fail "the user is left"
inside getent group rocm-nightly && fail "the group is left"
left=$(inside systemctl list-units --all --no-legend 'rocm-nightly*')
is "what systemd still knows" "$left" ""
step "passed"
