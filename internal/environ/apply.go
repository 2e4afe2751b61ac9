package environ

import (
	"regexp"
	"slices"
	"strings"
)

// The variables by which an environment is known, and can be left.
const (
	Name     = "ROCM_NIGHTLY_ENV"  // the prefix that was entered
	UndoName = "ROCM_NIGHTLY_UNDO" // what is to be undone: "KIND NAME VALUE", with tabs between
)

// The kinds of what is to be undone. New is added to that of a search path
// which was not set before.
const (
	kindSet   = "set"
	kindFirst = "first"
	kindLast  = "last"
	kindNew   = "-new"
)

// tab is between two things to undo: no value holds one.
const tab = "\t"

// vars is an environment as exec(2) takes it, in its order.
type vars []string

func (v vars) get(name string) (string, bool) {
	for _, kv := range v {
		if value, ok := strings.CutPrefix(kv, name+"="); ok {
			return value, true
		}
	}
	return "", false
}

func (v *vars) set(name, value string) {
	for i, kv := range *v {
		if strings.HasPrefix(kv, name+"=") {
			(*v)[i] = name + "=" + value
			return
		}
	}
	*v = append(*v, name+"="+value)
}

func (v *vars) unset(name string) {
	*v = slices.DeleteFunc(*v, func(kv string) bool { return strings.HasPrefix(kv, name+"=") })
}

// Enter returns env, as os.Environ has it, with the environment in it. Whatever
// was entered before is left first.
func (e *Environment) Enter(env []string) []string {
	v := vars(slices.Clone(env))
	was, _ := v.get(Name)
	again := was == e.Prefix
	if !again {
		v = Leave(v)
	}
	for _, s := range e.Set {
		if _, has := v.get(s.Name); !has {
			v.set(s.Name, s.Value)
			v.note(kindSet, s.Name, s.Value)
		}
	}
	fresh := map[string]string{}
	for _, l := range e.Lists {
		if _, has := v.get(l.Name); !has {
			fresh[l.Name] = kindNew
		}
		v.add(l, fresh[l.Name], again)
	}
	v.set(Name, e.Prefix)
	if _, has := v.get(UndoName); !has {
		v.set(UndoName, "")
	}
	return v
}

// add puts a directory into a search path. Where ours is to be first, it is put
// there although it may stand further behind, but once.
func (v *vars) add(l Search, fresh string, again bool) {
	value, _ := v.get(l.Name)
	if strings.Contains(":"+value+":", ":"+l.Dir+":") && (!l.First || again || strings.HasPrefix(value+":", l.Dir+":")) {
		return
	}
	kind := kindLast
	switch {
	case l.First:
		kind = kindFirst
		if value != "" {
			value = ":" + value
		}
		value = l.Dir + value
	case value != "":
		value += ":" + l.Dir
	default:
		value = l.Dir
	}
	v.set(l.Name, value)
	v.note(kind+fresh, l.Name, l.Dir)
}

// note writes down what is to be undone, once.
func (v *vars) note(kind, name, value string) {
	undo, _ := v.get(UndoName)
	if strings.Contains(undo+tab, " "+name+" "+value+tab) {
		return
	}
	if undo != "" {
		undo += tab
	}
	v.set(UndoName, undo+kind+" "+name+" "+value)
}

var plainName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

// Leave returns env as it was before an environment was entered, whichever it
// was. Without one, env comes back as it is.
func Leave(env []string) []string {
	v := vars(slices.Clone(env))
	undo, _ := v.get(UndoName)
	for item := range strings.SplitSeq(undo, tab) {
		part := strings.SplitN(item, " ", 3)
		if len(part) != 3 || !plainName.MatchString(part[1]) {
			continue
		}
		v.undo(part[0], part[1], part[2])
	}
	v.unset(Name)
	v.unset(UndoName)
	return v
}

func (v *vars) undo(kind, name, value string) {
	now, has := v.get(name)
	if kind == kindSet {
		if has && now == value {
			v.unset(name)
		}
		return
	}
	kind, fresh := strings.CutSuffix(kind, kindNew)
	if kind != kindFirst && kind != kindLast {
		return
	}
	list := strings.Split(now, ":")
	at := slices.Index(list, value)
	if kind == kindLast {
		for i, entry := range list {
			if entry == value {
				at = i
			}
		}
	}
	if at < 0 {
		return
	}
	list = slices.Delete(list, at, at+1)
	if len(list) == 0 && fresh {
		v.unset(name)
		return
	}
	v.set(name, strings.Join(list, ":"))
}
