#!/bin/sh
# build-release.sh ARCH OUT: one static binary for linux/ARCH whose bytes depend on
# the sources, the release of Go and three variables: VERSION, COMMIT, DATE. No path,
# host, clock or state of a repository gets into it, so that an archive of the sources
# gives the same bytes as a checkout.
set -eu
arch=$1
out=$2
: "${GO:=go}" "${VERSION:?}" "${COMMIT=}" "${DATE=}"
# What a user has set for other builds must not count here.
unset GOAMD64 GOARM64 GOEXPERIMENT GODEBUG GOGC GOCOVERDIR 2>/dev/null || true
export CGO_ENABLED=0 GOOS=linux GOARCH="$arch" GOFLAGS=-mod=readonly GOWORK=off GOENV=off
x="-X main.linkedVersion=$VERSION -X main.linkedCommit=$COMMIT -X main.linkedDate=$DATE"
"$GO" build -trimpath -buildvcs=false -ldflags "-s -w -buildid= $x" -o "$out" ./cmd/rocm-nightly
