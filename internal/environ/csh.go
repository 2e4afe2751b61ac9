package environ

import "strings"

// csh is the environment for csh and tcsh. They cannot search a list safely, so
// they ask a POSIX shell, which runs helper: the path of what cshHelper returns.
// What stands in "`...`" csh reads twice: no value may be put there, and so the
// shell gets the names of variables, with a dollar that csh does not see.
func (e *Environment) csh(shell, helper string) string {
	return strings.NewReplacer("@about@", e.About, "@helper@", quoteCsh(helper), "@shell@", shell, "@tick@", "`").Replace(cshText)
}

const cshText = `# @about@: source this file in csh or tcsh.
# rocm_nightly_leave takes everything back.
setenv ROCM_NIGHTLY_HELPER @helper@
set _rocm_nightly = '$'
eval "@tick@@shell@ -c 'IFS=;set -f;. ${_rocm_nightly}ROCM_NIGHTLY_HELPER' sh enter@tick@"
unsetenv ROCM_NIGHTLY_HELPER
unset _rocm_nightly
alias rocm_nightly_leave 'set _rocm_nightly = \$; eval "@tick@@shell@ -c '\''IFS=;set -f;test -z ${_rocm_nightly}ROCM_NIGHTLY_ENV || . ${_rocm_nightly}ROCM_NIGHTLY_ENV/etc/env-csh.sh'\'' sh leave@tick@"; unset _rocm_nightly'
`

// tellCsh prints, as commands of csh in one line, how the variables are now.
// In single quotes csh takes a quote and a mark of history for special.
const tellCsh = `_rocm_nightly_tell() {
	eval "_rocm_nightly_now=\${$1+set}"
	if [ -z "$_rocm_nightly_now" ]; then
		printf 'unsetenv %s;' "$1"
		return 0
	fi
	eval "_rocm_nightly_now=\$$1"
	_rocm_nightly_text=
	while :; do
		case $_rocm_nightly_now in
		*[\'!]*) ;;
		*) break ;;
		esac
		_rocm_nightly_head=${_rocm_nightly_now%%[\'!]*}
		_rocm_nightly_now=${_rocm_nightly_now#"$_rocm_nightly_head"}
		case $_rocm_nightly_now in
		\'*) _rocm_nightly_text="$_rocm_nightly_text$_rocm_nightly_head'\\''" ;;
		*) _rocm_nightly_text="$_rocm_nightly_text$_rocm_nightly_head\\!" ;;
		esac
		_rocm_nightly_now=${_rocm_nightly_now#?}
	done
	printf "setenv %s '%s';" "$1" "$_rocm_nightly_text$_rocm_nightly_now"
}
_rocm_nightly_all="${_rocm_nightly_undo}@tab@${ROCM_NIGHTLY_UNDO-}@tab@"
while [ -n "$_rocm_nightly_all" ]; do
	_rocm_nightly_one=${_rocm_nightly_all%%"@tab@"*}
	_rocm_nightly_all=${_rocm_nightly_all#*"@tab@"}
	_rocm_nightly_one=${_rocm_nightly_one#*" "}
	_rocm_nightly_one=${_rocm_nightly_one%%" "*}
	case $_rocm_nightly_one in
	'' | [!A-Za-z_]* | *[!A-Za-z0-9_]*) ;;
	*) _rocm_nightly_tell "$_rocm_nightly_one" ;;
	esac
done
_rocm_nightly_tell ROCM_NIGHTLY_ENV
_rocm_nightly_tell ROCM_NIGHTLY_UNDO
`

// cshHelper is a program for a POSIX shell that says what csh is to do: its
// argument is enter or leave.
func (e *Environment) cshHelper() string {
	return "# " + e.About + ": etc/env.csh runs this to learn what csh is to set.\n" +
		"_rocm_nightly_undo=${ROCM_NIGHTLY_UNDO-}\n" +
		"if [ \"$1\" = leave ]; then\n" + strings.ReplaceAll(leaveSh, "@tab@", tab) + "rocm_nightly_leave\nelse\n" + e.bodySh() + "fi\n" +
		strings.ReplaceAll(tellCsh, "@tab@", tab)
}
