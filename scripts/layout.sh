#!/bin/sh
# layout.sh BINARY RUN DIR: what a release holds beside the binary, in the order of the
# tarball: units, completions, manual, documents, install.sh. RUN is the same program
# for this machine: it writes the completions and the manual.
set -eu
cd "$(dirname "$0")/.."
binary=$1
run=$2
dir=$3
umask 022
mkdir -p "$dir/completions" "$dir/systemd" "$dir/docs"
install -m755 "$binary" "$dir/rocm-nightly"
install -m755 packaging/install.sh "$dir/install.sh"
install -m644 LICENSE README.md CHANGELOG.md config.yaml "$dir/"
[ ! -e SECURITY.md ] || install -m644 SECURITY.md "$dir/"
install -m644 packaging/machine.yaml "$dir/machine.yaml"
install -m644 docs/*.md "$dir/docs/"
(cd systemd && find . -type f \( -name '*.service' -o -name '*.socket' -o -name '*.timer' -o -name '*.path' -o -name '*.target' \
	-o -name '*.slice' -o -name '*.conf' -o -name '*.fc' \) | LC_ALL=C sort) | while read -r file; do
	install -D -m644 "systemd/$file" "$dir/systemd/$file"
done
"$run" man "$dir/man" --config-text config.yaml 2>/dev/null
"$run" completion bash >"$dir/completions/rocm-nightly.bash"
"$run" completion zsh >"$dir/completions/_rocm-nightly"
"$run" completion fish >"$dir/completions/rocm-nightly.fish"
