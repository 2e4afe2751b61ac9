# What is being released, for scripts that source this: VERSION, COMMIT, DATE (RFC
# 3339, UTC) and SOURCE_DATE_EPOCH, each as given or from git. Without a tag the
# version is the one that Go gives the commit.
# shellcheck shell=sh
here() { git -c safe.directory="$PWD" "$@" 2>/dev/null; }
# Not the repository that an archive of the sources was unpacked into.
if [ "$(here rev-parse --show-prefix || echo none)" = "" ]; then
	: "${COMMIT:=$(here rev-parse HEAD || true)}"
	: "${SOURCE_DATE_EPOCH:=$(here log -1 --format=%ct || true)}"
	if [ -z "${VERSION:-}" ]; then
		if ! VERSION=$(here describe --tags --exact-match --match 'v[0-9]*'); then
			last=$(here describe --tags --abbrev=0 --match 'v[0-9]*.[0-9]*.[0-9]*' --exclude '*-*' || true)
			base=v0.0.0
			[ -z "$last" ] || base=${last%.*}.$((${last##*.} + 1))
			sep=-
			[ -z "$last" ] || sep=-0.
			VERSION=$base$sep$(TZ=UTC0 here log -1 --date=format-local:%Y%m%d%H%M%S --format=%cd)-$(here rev-parse --short=12 HEAD)
		fi
		[ -z "$(here status --porcelain --untracked-files=no)" ] || VERSION=$VERSION+dirty
	fi
fi
: "${VERSION:=dev}" "${COMMIT:=}" "${SOURCE_DATE_EPOCH:=0}"
DATE=$(TZ=UTC0 date -d "@$SOURCE_DATE_EPOCH" +%Y-%m-%dT%H:%M:%SZ)
export VERSION COMMIT DATE SOURCE_DATE_EPOCH
