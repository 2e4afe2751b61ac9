#!/usr/bin/env bash
# Builds a tarball shaped like AMD's from Debian's own ROCm and LLVM packages:
# about 1.6 GB of real programs and libraries, with the traps of AMD's tarballs
# built in. Nothing is installed; root is not needed.
#
#   scripts/corpus.sh                    build it unless it is there; print its path
#   scripts/corpus.sh --night VERSION    the same for a later night, which differs a little
#   scripts/corpus.sh --print            print the path only; status 1 if it is not built
#
# The last line of standard output is the path; all else goes to standard
# error. The cache is in $ROCM_NIGHTLY_CORPUS, by default
# ~/.cache/rocm-nightly/corpus, under a key made of package versions and of the
# sources of this script: remove it at will.
set -euo pipefail
shopt -s inherit_errexit
umask 022
export LC_ALL=C

here=$(cd "$(dirname "$0")" && pwd)
repo=$(dirname "$here")
first_night=10.2.0a20260930
family=gfx103X-all
cache=${ROCM_NIGHTLY_CORPUS:-${XDG_CACHE_HOME:-${HOME:?set HOME or ROCM_NIGHTLY_CORPUS}/.cache}/rocm-nightly/corpus}

say() { printf 'corpus: %s\n' "$*" >&2; }
die() { say "$*"; exit 1; }
usage() { sed -n '2,/^set/{/^set/d;s/^# \{0,1\}//;p}' "$0" >&2; exit 2; }

# shellcheck source=corpus/layout.sh
. "$here/corpus/layout.sh"
# shellcheck source=corpus/traps.sh
. "$here/corpus/traps.sh"

need() { # COMMAND PACKAGE
	command -v "$1" >/dev/null || die "$1 is missing: apt-get install $2 (this script needs Debian 12 or what is built on it)"
}

# uris prints one line per package: 'URL' FILENAME SIZE HASH.
uris() {
	local names out
	mapfile -t names < <(sed 's/#.*//' "$here/corpus/packages" | tr -s ' ' '\n' | grep .)
	if ! out=$(apt-get --print-uris download "${names[@]}" 2>&1); then
		printf '%s\n' "$out" >&2
		die "apt knows no such packages: run apt-get update, on Debian 12 (bookworm)"
	fi
	grep "^'" <<<"$out"
}

# key prints what the content depends on, as one hash.
key() {
	{
		uris | cut -d' ' -f2-
		(cd "$repo" && find scripts/corpus.sh scripts/corpus internal/demo/mkcorpus internal/demo/{late,kpack}.go \
			-type f | sort | xargs sha256sum)
	} | sha256sum | cut -c1-16
}

download() { # into $cache/debs
	local list file missing=()
	list=$(uris)
	mkdir -p "$cache/debs"
	while read -r _ file _ hash; do
		# Hashes are SHA256:hex or MD5Sum:hex; only the first is worth checking.
		if [[ $hash == SHA256:* ]] && echo "${hash#SHA256:}  $cache/debs/$file" | sha256sum --status -c - 2>/dev/null; then continue; fi
		missing+=("${file%%_*}")
	done <<<"$list"
	((${#missing[@]})) || return 0
	say "downloading ${#missing[@]} packages"
	if ! (cd "$cache/debs" && apt-get -qq -o APT::Sandbox::User=root download "${missing[@]}" >/dev/null 2>"$cache/debs/log"); then
		tail -n 3 "$cache/debs/log" >&2
		die "the packages cannot be downloaded: is there a network? is apt-get update needed? (all of it: $cache/debs/log)"
	fi
}

extract() { # DIR
	local file
	say "extracting"
	uris | while read -r _ file _; do
		dpkg-deb -x "$cache/debs/$file" "$1" || die "dpkg-deb cannot extract $cache/debs/$file: remove it and try again"
	done
}

pack() { # TREE VERSION OUT
	say "packing $(du -sh "$1" | cut -f1), $(find "$1" | wc -l) entries"
	chmod 775 "$1" # the builder's umask
	tar -C "$1" --format=gnu --sort=name --mtime="$(night_date "$2") 11:00:00 UTC" \
		--owner=rocm-signer:1004 --group=rocm-signer:1004 -cf - . | gzip -6 -n >"$3"
	touch -d "$(night_date "$2") 12:00:00 UTC" "$3"
}

night_date() { # VERSION: the date in it, as 2026-09-30
	[[ $1 =~ a([0-9]{4})([0-9]{2})([0-9]{2})$ ]] || die "$1 is not the version of a night: like $first_night"
	echo "${BASH_REMATCH[1]}-${BASH_REMATCH[2]}-${BASH_REMATCH[3]}"
}

build_first() { # WORK OUT
	local work=$1
	download
	extract "$work/debian"
	lay_out "$work/debian" "$work/tree"
	(cd "$repo" && go build -buildvcs=false -o "$work/mkcorpus" ./internal/demo/mkcorpus) || die "mkcorpus does not build"
	add_traps "$work" "$work/tree"
	add_version "$work/tree" "$first_night"
	check_closure "$work/tree"
	pack "$work/tree" "$first_night" "$2"
}

build_later() { # WORK OUT VERSION BASE
	mkdir "$1/tree"
	say "extracting $4"
	tar -C "$1/tree" --no-same-owner -xzf "$4"
	add_version "$1/tree" "$3"
	change_a_little "$1/tree" "$3"
	pack "$1/tree" "$3" "$2"
}

build() { # BASE OUT VERSION
	local work started=$SECONDS
	need go golang-go; need gcc 'gcc libc6-dev'; need readelf binutils; need flock util-linux
	mkdir -p "$cache"
	exec 9>"$cache/.lock"
	flock -n 9 || { say "another build is running: waiting"; flock 9; }
	work=$(mktemp -d "$cache/.build-XXXXXX")
	# shellcheck disable=SC2064
	trap "chmod -R u+w '$work'; rm -rf '$work'" EXIT
	if [[ ! -f $1 ]]; then
		build_first "$work" "$work/first.tar.gz"
		mkdir -p "$(dirname "$1")"
		mv "$work/first.tar.gz" "$1"
	fi
	if [[ ! -f $2 ]]; then
		rm -rf "$work/tree"
		build_later "$work" "$work/later.tar.gz" "$3" "$1"
		mv "$work/later.tar.gz" "$2"
	fi
	say "$(stat -c %s "$2") bytes in $((SECONDS - started)) s"
}

main() {
	local version=$first_night print=
	while (($#)); do
		case $1 in
		--print) print=1 ;;
		--night) version=${2:-}; night_date "$version" >/dev/null; shift ;;
		*) usage ;;
		esac
		shift
	done
	need apt-get apt; need dpkg-deb dpkg; need tar tar; need gzip gzip; need sha256sum coreutils
	local dir base out
	dir=$cache/$(key)
	base=$dir/therock-dist-linux-$family-$first_night.tar.gz
	out=$dir/therock-dist-linux-$family-$version.tar.gz
	if [[ -n $print ]]; then echo "$out"; [[ -f $out ]]; return; fi
	[[ -f $out ]] || build "$base" "$out" "$version"
	echo "$out"
}

main "$@"
