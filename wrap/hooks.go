package wrap

import "strings"

// hooks adds nix-support/setup-hook, which stdenv sources for each package that
// has this one among its inputs.
func (l *layout) hooks(o Options) {
	rocm := under(strings.TrimRight(o.FinalPrefix, "/"), treeDir)
	l.file("nix-support/setup-hook", modeFile, strings.ReplaceAll(setupHook, "@rocm@", quoteSh(rocm)))
}

// setupHook is bash, since stdenv is, and safe under set -eu. addToSearchPath is
// stdenv's own, and the way in which its CMake hook is extended; a plain bash has
// none.
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
