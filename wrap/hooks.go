package wrap

import (
	"maps"
	"slices"
	"strings"
)

// hooks adds nix-support/setup-hook, which stdenv sources for each package that
// has this one among its inputs.
func (l *layout) hooks(o Options) {
	rocm := under(strings.TrimRight(o.FinalPrefix, "/"), treeDir)
	text := strings.ReplaceAll(setupHook, "@rocm@", quoteSh(rocm))
	for _, name := range slices.Sorted(maps.Keys(o.Env)) {
		if value := o.Env[name]; value != "" {
			text += "if [[ -z \"${" + name + "+set}\" ]]; then export " + name + "=" + quoteSh(value) + "; fi\n"
		}
	}
	l.file("nix-support/setup-hook", modeFile, text)
}

// setupHook is bash, since stdenv is, and safe under set -eu. addToSearchPath is
// stdenv's own, and the way in which its CMake hook is extended; a plain bash has
// none. It is sourced once for each offset between the platforms that the package
// is an input for, so that it looks first. Nothing of it depends on the offset:
// the compiler among the native inputs and the libraries among the others are one
// tree, and find_package(hip) is to find it from either.
const setupHook = `export ROCM_PATH=@rocm@
export HIP_PATH=@rocm@
case ":${CMAKE_PREFIX_PATH-}:" in
*:@rocm@:*) ;;
*)
	if declare -F addToSearchPath >/dev/null; then
		addToSearchPath CMAKE_PREFIX_PATH @rocm@
	else
		CMAKE_PREFIX_PATH=${CMAKE_PREFIX_PATH:+$CMAKE_PREFIX_PATH:}@rocm@
	fi
	export CMAKE_PREFIX_PATH
	;;
esac
`
