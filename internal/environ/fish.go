package environ

import "strings"

// fishHead defines the way back, and helpers that go when they have been used.
// In fish the variables whose names end in PATH are lists, and without an IFS no
// output is split into lines.
const fishHead = `function rocm_nightly_leave --description 'Take the environment of rocm-nightly back'
    set -l IFS \n
    for item in (string split \t -- "$ROCM_NIGHTLY_UNDO")
        set -l part (string split -m 2 ' ' -- $item)
        test (count $part) -eq 3; or continue
        string match -qr '^[A-Za-z_][A-Za-z0-9_]*$' -- $part[2]; or continue
        set -l kind (string split -- - $part[1])
        set -l name $part[2]
        if test $kind[1] = set
            if test "$$name" = $part[3]
                set -eg $name
            end
            continue
        end
        set -l list (string split -- : "$$name")
        set -l at
        for i in (seq (count $list))
            if test "$list[$i]" = $part[3]
                set at $i
                test $kind[1] = first; and break
            end
        end
        test -n "$at"; or continue
        set -e list[$at]
        if test (count $list) -eq 0 -a "$kind[2]" = new
            set -eg $name
        else
            set -gx --path $name $list
        end
    end
    set -eg ROCM_NIGHTLY_ENV
    set -eg ROCM_NIGHTLY_UNDO
    true
end
function _rocm_nightly_note
    set -l IFS \n
    contains -- "$argv[2] $argv[3]" (string split \t -- "$ROCM_NIGHTLY_UNDO" | string replace -r '^[a-z-]* ' '')
    and return
    if test -n "$ROCM_NIGHTLY_UNDO"
        set -gx ROCM_NIGHTLY_UNDO "$ROCM_NIGHTLY_UNDO"\t"$argv"
    else
        set -gx ROCM_NIGHTLY_UNDO "$argv"
    end
end
function _rocm_nightly_set
    set -q $argv[1]; and return
    set -gx $argv[1] $argv[2]
    _rocm_nightly_note set $argv
end
function _rocm_nightly_list
    set -l name $argv[1]
    if not set -q $name
        set -g _rocm_nightly_new $_rocm_nightly_new $name
    end
    set -l list
    test -n "$$name"; and set list $$name
    test "$list[1]" = $argv[2]; and return
    if contains -- $argv[2] $list
        test $argv[3] = last; and return
        set -q _rocm_nightly_again; and return
    end
    if test $argv[3] = first
        set -gx --path $name $argv[2] $list
    else
        set -gx --path $name $list $argv[2]
    end
    if contains -- $name $_rocm_nightly_new
        _rocm_nightly_note $argv[3]-new $argv[1] $argv[2]
    else
        _rocm_nightly_note $argv[3] $argv[1] $argv[2]
    end
end
set -g _rocm_nightly_again
if test "$ROCM_NIGHTLY_ENV" != @prefix@
    rocm_nightly_leave
    set -eg _rocm_nightly_again
end
`

const fishTail = `set -gx ROCM_NIGHTLY_ENV @prefix@
set -q ROCM_NIGHTLY_UNDO; or set -gx ROCM_NIGHTLY_UNDO ''
functions -e _rocm_nightly_note _rocm_nightly_set _rocm_nightly_list
set -eg _rocm_nightly_again
set -eg _rocm_nightly_new
true
`

// fish is the environment for fish.
func (e *Environment) fish() string {
	fill := strings.NewReplacer("@prefix@", quoteFish(e.Prefix)).Replace
	var b strings.Builder
	b.WriteString("# " + e.About + ": source this file in fish.\n# rocm_nightly_leave takes everything back.\n" + fill(fishHead))
	for _, v := range e.Set {
		b.WriteString("_rocm_nightly_set " + v.Name + " " + quoteFish(v.Value) + "\n")
	}
	for _, s := range e.Lists {
		b.WriteString("_rocm_nightly_list " + s.Name + " " + quoteFish(s.Dir) + " " + s.end() + "\n")
	}
	b.WriteString(fill(fishTail))
	return b.String()
}

// end is at which end of a search path the directory is put.
func (s Search) end() string {
	if s.First {
		return kindFirst
	}
	return kindLast
}
