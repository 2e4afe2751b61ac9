#!/bin/bash
# What takes longer than a short test run may: crash loops, streams of 16 GiB,
# every step of a full disk, every ELF file of this machine, longer fuzzing,
# benchmarks. Run it before a release.
set -euo pipefail
cd "$(dirname "$0")/.."
: "${GO:=go}"

./scripts/test.sh
STORE_TEST_KILLS=${STORE_TEST_KILLS:-500} "$GO" test -count=1 -run '^Test(CurrentIsAlwaysComplete|ReuseLeavesNothingAfterAKill)$' -timeout 30m ./store
"$GO" test -count=1 -run '^Test(SlotFollowsTheModel|TheModelHoldsThroughCrashes)$' -rapid.checks="${STORE_TEST_CHECKS:-500}" -timeout 60m ./store
ROCM_NIGHTLY_AXE_KILLS=${ROCM_NIGHTLY_AXE_KILLS:-3000} ROCM_NIGHTLY_AXE_CUTS=${ROCM_NIGHTLY_AXE_CUTS:-300} \
	"$GO" test -count=1 -run '^TestPromise(TheNextRunMendsWhatWasKilled|APowerCutAtAnyInstant)$' -timeout 60m ./internal/e2e
ROCM_NIGHTLY_AXE_FAULTS=all "$GO" test -count=1 -tags faults -run Fault -timeout 60m ./internal/e2e
"$GO" test -count=1 -tags faults -run Fault -timeout 60m ./bump
"$GO" test -count=1 -tags heavy -timeout 60m ./...
# A fresh Debian, booted. Not every machine can: it says so.
./scripts/test-install.sh || [ $? = 77 ]
# The other processor of a release: sizes of the kernel's fields differ there.
GOARCH=arm64 CGO_ENABLED=0 "$GO" vet ./...
(cd packaging && "$GO" test -count=1 -tags heavy -timeout 30m ./...)
FUZZTIME=${FUZZTIME:-60s} ./scripts/fuzz.sh
# The goals are set for a quiet machine, and one of them is not reached everywhere.
./scripts/bench.sh || echo "test-heavy: the benchmarks did not reach all of their goals: see above" >&2
