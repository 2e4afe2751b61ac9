package wrap

import (
	"regexp"
	"strings"

	"github.com/rocm-nightly/rocm-nightly/internal/manifest"
)

// binaries fills bin/: a wrapper for each program of the tree's bin/, and a
// relative link for everything else that is in it, because programs look for
// their neighbours.
func (l *layout) binaries(o Options, script func(treePath string) (bool, error)) error {
	l.dir("bin")
	bin, ok := l.tree.resolveDir("", "bin")
	if !ok {
		return nil
	}
	for _, name := range l.names[bin] {
		program, err := l.isProgram(bin, name, script)
		if err != nil {
			return err
		}
		if program {
			l.file("bin/"+name, modeExec, wrapperText(name, o))
		} else {
			l.link("bin/"+name, treeDir+"/bin/"+name)
		}
	}
	return nil
}

// libraryName matches the names by which the linker and the loader find a
// library. A program may have .so elsewhere in its name, as tool.sort has.
var libraryName = regexp.MustCompile(`\.so(\.[0-9]+)*$`)

// ofCompiler reports whether a file is one of the compiler's. Links to those stay
// links: the drivers find their configuration by the directory and the name that
// they are called by.
func ofCompiler(real string) bool {
	return strings.HasPrefix(real, "lib/llvm/") || strings.HasPrefix(real, "llvm/")
}

// isProgram reports whether an entry of bin/ is to be wrapped: an executable
// regular file, wherever in the tree a link leads to it, that is a script or an
// x86-64 program, but for the compiler's.
func (l *layout) isProgram(bin, name string, script func(string) (bool, error)) (bool, error) {
	real, ok := l.tree.resolve(bin, name)
	if !ok || parent(real) != bin && ofCompiler(real) {
		return false, nil
	}
	f := l.tree.file(real)
	if f == nil || f.Kind != manifest.Regular || f.Mode&0o111 == 0 {
		return false, nil
	}
	if e := l.tree.elf(f, treeDir); e != nil {
		library := libraryName.MatchString(name) || e.Soname != "" && e.Interp == ""
		return e.Machine == "x86_64" && (e.Type == "dyn" || e.Type == "exec") && !library, nil
	}
	return script(real)
}

// wrapperText is the wrapper of opt/rocm/bin/NAME. It depends on nothing but
// the name, the shell and the version: where the prefix lies it finds out when it
// runs. Its variables have names that no environment has, since giving a value to
// an exported variable would change what the program sees.
func wrapperText(name string, o Options) string {
	program := quoteSh(name)
	r := strings.NewReplacer(
		"@shell@", o.Shell,
		"@readlink@", quoteReadlink(o.Readlink),
		"@program@", program,
		"@stable@", stableText(name),
		"@cache@", cacheText(o),
	)
	return r.Replace(wrapperTemplate)
}

// The common path starts no program: each step is a builtin of every POSIX
// shell. `cd -P` makes the parent of bin/ the real one when the wrapper was
// reached through a link to a directory, such as current.
const wrapperTemplate = `#!@shell@
# Runs the program of this name in opt/rocm/bin of the prefix that this file is in.
_rocm_nightly_self=$0
case $_rocm_nightly_self in
*/*) ;;
*)
	if [ -f "./$_rocm_nightly_self" ]; then
		_rocm_nightly_self=./$_rocm_nightly_self
	else
		_rocm_nightly_self=$(command -v -- "$_rocm_nightly_self")
	fi
	;;
esac
while [ -L "$_rocm_nightly_self" ]; do
	_rocm_nightly_link=$(@readlink@ -- "$_rocm_nightly_self") || exit 127
	case $_rocm_nightly_link in
	/*) _rocm_nightly_self=$_rocm_nightly_link ;;
	*) _rocm_nightly_self=${_rocm_nightly_self%/*}/$_rocm_nightly_link ;;
	esac
done
_rocm_nightly_root=$(CDPATH= command cd -P -- "${_rocm_nightly_self%/*}/.." && command pwd -P) || exit 127
_rocm_nightly_root=${_rocm_nightly_root%/}/opt/rocm
_rocm_nightly_path=$_rocm_nightly_root
if [ ! -x "$_rocm_nightly_root"/bin/@program@ ]; then
	printf '%s: not found: %s\n' "$0" "$_rocm_nightly_root"/bin/@program@ >&2
	printf '%s\n' 'A wrapper works in its own prefix only: make a symbolic link to it instead of a copy.' >&2
	exit 127
fi
@stable@if [ "${ROCM_NIGHTLY_KEEP_ENV-}" != 1 ]; then
	unset ROCM_PATH HIP_PATH LLVM_PATH
fi
export ROCM_PATH="${ROCM_PATH:-$_rocm_nightly_path}"
export HIP_PATH="${HIP_PATH:-$_rocm_nightly_path}"
@cache@exec "$_rocm_nightly_root"/bin/@program@ "$@"
`

// recordsPaths matches the programs whose ROCM_PATH ends up in what others
// build: hipcc has put it into run paths, and hipconfig prints it for build
// systems.
var recordsPaths = regexp.MustCompile(`^(hipcc|hipconfig)(\.|$)`)

// stableText lets such a program name the link that leads to its generation
// while that is the active one. All others get the generation itself: what they
// open later must be of the same release as they are. The program is started by
// its real path in either case.
func stableText(name string) string {
	if !recordsPaths.MatchString(name) {
		return ""
	}
	return `case $_rocm_nightly_root in
*/generations/*/opt/rocm)
	_rocm_nightly_slot=${_rocm_nightly_root%/generations/*/opt/rocm}
	if [ -L "$_rocm_nightly_slot/current" ] &&
		[ "$(CDPATH= command cd -P -- "$_rocm_nightly_slot/current/opt/rocm" 2>/dev/null && command pwd -P)" = "$_rocm_nightly_root" ]; then
		_rocm_nightly_path=$_rocm_nightly_slot/current/opt/rocm
	fi
	;;
esac
`
}

// cacheText keys the code-object cache by release: objects that another version
// left there fail to link, or link wrongly. The user's own choice, an empty one
// included, stays; that of another release's wrapper, or of exec, is none.
func cacheText(o Options) string {
	key := cacheKey(o)
	if key == "" {
		return ""
	}
	return strings.ReplaceAll(`case ${AMD_COMGR_CACHE_DIR-/rocm-nightly/comgr-} in
*/rocm-nightly/comgr-*)
	unset AMD_COMGR_CACHE_DIR
	case ${XDG_CACHE_HOME-} in
	/*) export AMD_COMGR_CACHE_DIR="$XDG_CACHE_HOME/rocm-nightly/comgr-@key@" ;;
	*)
		if [ -d "${HOME-}" ]; then
			export AMD_COMGR_CACHE_DIR="$HOME/.cache/rocm-nightly/comgr-@key@"
		fi
		;;
	esac
	;;
esac
`, "@key@", key)
}

// cacheKey is the name by which one release knows its cache; "" if there is
// nothing to tell it by.
func cacheKey(o Options) string {
	key := o.Version
	if hex, ok := strings.CutPrefix(o.Digest, "sha256:"); ok {
		key = strings.TrimPrefix(key+"-"+hex[:12], "-")
	}
	return key
}

// quoteReadlink is the command word for readlink: a bare name goes past shell
// functions, a path needs its quotes.
func quoteReadlink(s string) string {
	if plainName.MatchString(s) {
		return "command " + s
	}
	return quoteSh(s)
}
