#!/bin/bash
# release.sh [--version V] [--out DIR] [--arch ARCH]... [--packages]: everything that
# is published of one commit, byte for byte the same wherever it is made with the same
# release of Go: static binaries in tarballs, deb, rpm and Arch packages, an SBOM of
# each binary, SHA256SUMS, and its signature when MINISIGN_KEY names a secret key (its
# password in MINISIGN_PASSWORD_FILE, or asked for). --packages leaves out what only
# a release needs. docs/release.md.
set -euo pipefail
cd "$(dirname "$0")/.."
: "${GO:=go}"
out=dist
archs=()
only=
while [ $# -gt 0 ]; do
	case $1 in
	--version) VERSION=${2:?--version: a version is missing}; shift 2 ;;
	--out) out=${2:?--out: a directory is missing}; shift 2 ;;
	--arch) archs+=("${2:?--arch: amd64 or arm64 is missing}"); shift 2 ;;
	--packages) only=packages; shift ;;
	*) echo "usage: release.sh [--version V] [--out DIR] [--arch amd64|arm64]... [--packages]" >&2; exit 2 ;;
	esac
done
[ ${#archs[@]} -gt 0 ] || archs=(amd64 arm64)
export TZ=UTC0 LC_ALL=C
unset GOAMD64 GOARM64 GOEXPERIMENT GODEBUG
umask 022
# shellcheck source=release-version.sh
. scripts/release-version.sh
if ! [[ $VERSION =~ ^v?[0-9]+\.[0-9]+\.[0-9]+([-+][0-9A-Za-z.+-]+)?$ ]]; then
	echo "release: $VERSION is no version: give one like v1.2.3 with --version" >&2
	exit 2
fi
case $VERSION in v*) ;; *) VERSION=v$VERSION ;; esac

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
host=$("$GO" env GOHOSTARCH)
echo "release: $VERSION, commit ${COMMIT:-unknown} of $DATE, $("$GO" env GOVERSION)" >&2
for arch in "${archs[@]}"; do
	./scripts/build-release.sh "$arch" "$work/rocm-nightly-$arch"
done
run=$work/rocm-nightly-$host # the one that this machine can start
[ -e "$run" ] || ./scripts/build-release.sh "$host" "$run"
(cd packaging && GOFLAGS=-mod=readonly GOWORK=off CGO_ENABLED=0 "$GO" build -trimpath -buildvcs=false -o "$work/pack" .)

mkdir -p "$out"
rm -f "$out"/rocm-nightly_* "$out"/SHA256SUMS "$out"/SHA256SUMS.minisig
for arch in "${archs[@]}"; do
	name=rocm-nightly_${VERSION#v}_linux_$arch
	./scripts/layout.sh "$work/rocm-nightly-$arch" "$run" "$work/$name"
	"$work/pack" licenses -go "$GO" -o "$work/$name/THIRD-PARTY" "$work/$name/rocm-nightly"
	DESTDIR=$work/stage-$arch PREFIX=/usr "$work/$name/install.sh"
	"$work/pack" packages -version "$VERSION" -arch "$arch" -scripts packaging -o "$out" "$work/stage-$arch"
	[ -z "$only" ] || continue
	"$work/pack" tarball -o "$out/$name.tar.gz" "$work/$name"
	"$work/pack" sbom -version "$VERSION" -commit "$COMMIT" -o "$out/$name.spdx.json" "$work/$name/rocm-nightly"
done
(cd "$out" && sha256sum -- rocm-nightly_* >SHA256SUMS)
if [ -n "${MINISIGN_KEY:-}" ]; then
	# minisign reads the password from its standard input.
	minisign -S -s "$MINISIGN_KEY" -m "$out/SHA256SUMS" -c "rocm-nightly $VERSION" -t "rocm-nightly $VERSION" \
		<"${MINISIGN_PASSWORD_FILE:-/dev/stdin}" >/dev/null
elif [ -z "$only" ]; then
	echo "release: SHA256SUMS is not signed: MINISIGN_KEY names no key" >&2
fi
ls -l "$out" >&2
