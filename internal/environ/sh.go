package environ

import (
	"slices"
	"strings"
)

// leaveSh is the way back, as a function that stays: it needs nothing but what
// is in the environment. Patterns hold only quoted values, and no word is split,
// so that noglob and IFS do not matter. An entry that was put first is the first
// one of its kind, another the last.
const leaveSh = `rocm_nightly_leave() {
	_rocm_nightly_rest=${ROCM_NIGHTLY_UNDO-}
	while [ -n "$_rocm_nightly_rest" ]; do
		_rocm_nightly_item=${_rocm_nightly_rest%%"@tab@"*}
		case $_rocm_nightly_rest in
		*"@tab@"*) _rocm_nightly_rest=${_rocm_nightly_rest#*"@tab@"} ;;
		*) _rocm_nightly_rest= ;;
		esac
		_rocm_nightly_kind=${_rocm_nightly_item%%" "*}
		_rocm_nightly_item=${_rocm_nightly_item#*" "}
		_rocm_nightly_name=${_rocm_nightly_item%%" "*}
		_rocm_nightly_item=${_rocm_nightly_item#*" "}
		case $_rocm_nightly_name in
		'' | [!A-Za-z_]* | *[!A-Za-z0-9_]*) continue ;;
		esac
		eval "_rocm_nightly_now=\${$_rocm_nightly_name-}"
		case $_rocm_nightly_kind in
		set)
			if [ "$_rocm_nightly_now" = "$_rocm_nightly_item" ]; then unset "$_rocm_nightly_name"; fi
			continue
			;;
		first*)
			_rocm_nightly_head=":$_rocm_nightly_now:"
			_rocm_nightly_head=${_rocm_nightly_head%%":$_rocm_nightly_item:"*}
			_rocm_nightly_tail=":$_rocm_nightly_now:"
			_rocm_nightly_tail=${_rocm_nightly_tail#*":$_rocm_nightly_item:"}
			;;
		last*)
			_rocm_nightly_head=":$_rocm_nightly_now:"
			_rocm_nightly_head=${_rocm_nightly_head%":$_rocm_nightly_item:"*}
			_rocm_nightly_tail=":$_rocm_nightly_now:"
			_rocm_nightly_tail=${_rocm_nightly_tail##*":$_rocm_nightly_item:"}
			;;
		*) continue ;;
		esac
		case ":$_rocm_nightly_now:" in
		*":$_rocm_nightly_item:"*) ;;
		*) continue ;;
		esac
		if [ -n "$_rocm_nightly_head" ] && [ -n "$_rocm_nightly_tail" ]; then
			_rocm_nightly_now="${_rocm_nightly_head#":"}:${_rocm_nightly_tail%":"}"
		elif [ -n "$_rocm_nightly_head" ]; then
			_rocm_nightly_now=${_rocm_nightly_head#":"}
		elif [ -n "$_rocm_nightly_tail" ]; then
			_rocm_nightly_now=${_rocm_nightly_tail%":"}
		else
			_rocm_nightly_now=
			case $_rocm_nightly_kind in
			*-new)
				unset "$_rocm_nightly_name"
				continue
				;;
			esac
		fi
		eval "$_rocm_nightly_name=\$_rocm_nightly_now"
	done
	unset ROCM_NIGHTLY_ENV ROCM_NIGHTLY_UNDO
	unset _rocm_nightly_rest _rocm_nightly_item _rocm_nightly_kind _rocm_nightly_name _rocm_nightly_now _rocm_nightly_head _rocm_nightly_tail
}
`

// enterSh are helpers that go when they have been used. _rocm_nightly_list takes
// NAME DIR and first or last; what it finds unset it remembers for the second
// directory of the same search path.
const enterSh = `_rocm_nightly_note() {
	case "${ROCM_NIGHTLY_UNDO-}@tab@" in
	*" $2 $3@tab@"*) ;;
	*) ROCM_NIGHTLY_UNDO="${ROCM_NIGHTLY_UNDO-}${ROCM_NIGHTLY_UNDO:+@tab@}$1 $2 $3" ;;
	esac
}
_rocm_nightly_set() {
	eval "_rocm_nightly_now=\${$1+set}"
	if [ -z "$_rocm_nightly_now" ]; then
		eval "$1=\$2"
		export "$1"
		_rocm_nightly_note set "$1" "$2"
	fi
}
_rocm_nightly_list() {
	eval "_rocm_nightly_now=\${$1-}"
	eval "if [ -z \"\${$1+set}\" ]; then _rocm_nightly_new=\"\$_rocm_nightly_new $1 \"; fi"
	case ":$_rocm_nightly_now:" in
	":$2:"*) return 0 ;;
	*":$2:"*) if [ "$3" = last ] || [ -n "$_rocm_nightly_again" ]; then return 0; fi ;;
	esac
	if [ "$3" = first ]; then
		eval "$1=\"\$2\${_rocm_nightly_now:+:\$_rocm_nightly_now}\""
	else
		eval "$1=\"\${_rocm_nightly_now:+\$_rocm_nightly_now:}\$2\""
	fi
	export "$1"
	case "$_rocm_nightly_new" in
	*" $1 "*) _rocm_nightly_note "$3-new" "$1" "$2" ;;
	*) _rocm_nightly_note "$3" "$1" "$2" ;;
	esac
}
_rocm_nightly_new=
_rocm_nightly_again=set
if [ "${ROCM_NIGHTLY_ENV-}" != @prefix@ ]; then
	rocm_nightly_leave
	_rocm_nightly_again=
fi
`

const enteredSh = `export ROCM_NIGHTLY_ENV=@prefix@
export ROCM_NIGHTLY_UNDO="${ROCM_NIGHTLY_UNDO-}"
unset -f _rocm_nightly_note _rocm_nightly_set _rocm_nightly_list
unset _rocm_nightly_now _rocm_nightly_new _rocm_nightly_again
`

// sh is the environment for a POSIX shell, bash, ksh or zsh.
func (e *Environment) sh() string {
	return "# " + e.About + ": source this file in sh, bash, dash, ksh or zsh.\n" +
		"# rocm_nightly_leave takes everything back.\n" + e.bodySh()
}

func (e *Environment) bodySh() string {
	fill := strings.NewReplacer("@tab@", tab, "@prefix@", QuoteSh(e.Prefix)).Replace
	var b strings.Builder
	b.WriteString(fill(leaveSh) + fill(enterSh))
	for _, v := range e.Set {
		b.WriteString("_rocm_nightly_set " + v.Name + " " + QuoteSh(v.Value) + "\n")
	}
	for _, s := range e.Lists {
		b.WriteString("_rocm_nightly_list " + s.Name + " " + QuoteSh(s.Dir) + " " + s.end() + "\n")
	}
	b.WriteString(fill(enteredSh))
	return b.String()
}

// Profile is the smallest set for every login shell of a machine: those of the
// variables that are named, and our programs after the system's own. It is no
// environment that was entered: there is nothing to leave.
func (e *Environment) Profile(names ...string) string {
	var b strings.Builder
	b.WriteString("# " + e.About + " for login shells.\n")
	for _, v := range e.Set {
		if slices.Contains(names, v.Name) {
			b.WriteString("if [ -z \"${" + v.Name + "+set}\" ]; then export " + v.Name + "=" + QuoteSh(v.Value) + "; fi\n")
		}
	}
	for _, s := range e.Lists {
		if s.Name == "PATH" {
			dir := QuoteSh(s.Dir)
			b.WriteString("case \":${PATH-}:\" in\n*:" + dir + ":*) ;;\n*) export PATH=\"${PATH:+$PATH:}\"" + dir + " ;;\nesac\n")
		}
	}
	return b.String()
}
