package environ

import "strings"

// OwnName is the variable in which a module writes down what it set: only that
// is undone.
const OwnName = "ROCM_NIGHTLY_MODULE"

// Tcl is the environment as a module for environment-modules, and for an Lmod
// that has no use for the one in Lua. It undoes on unload what it did on load, and
// nothing that the user had or has changed.
func (e *Environment) Tcl() string {
	var b strings.Builder
	b.WriteString("#%Module1.0\nmodule-whatis " + quoteTcl(e.About) + "\nconflict rocm-nightly\nconflict rocm\n" + tclHead)
	for _, v := range e.Set {
		b.WriteString("_rocm_nightly_set " + v.Name + " " + quoteTcl(v.Value) + "\n")
	}
	for _, s := range e.Lists {
		b.WriteString("_rocm_nightly_list " + s.verb("-path") + " " + s.Name + " " + quoteTcl(s.Dir) + "\n")
	}
	return b.String()
}

// verb is how a module puts a directory into a search path.
func (s Search) verb(path string) string {
	if s.First {
		return "prepend" + path
	}
	return "append" + path
}

// tclHead finds out what is to be done. When a module is unloaded setenv unsets,
// and append-path and prepend-path take away.
const tclHead = `set _rocm_nightly_own [expr {[info exists ::env(ROCM_NIGHTLY_MODULE)] ? [split $::env(ROCM_NIGHTLY_MODULE) :] : {}}]
proc _rocm_nightly_mine {name} {
	if {[module-info mode remove] || [module-info mode unload]} {
		return [expr {[lsearch -exact $::_rocm_nightly_own $name] >= 0}]
	}
	return -1
}
proc _rocm_nightly_set {name value} {
	set mine [_rocm_nightly_mine $name]
	if {$mine == 0} {return}
	if {$mine == 1} {
		append-path ROCM_NIGHTLY_MODULE $name
		if {[info exists ::env($name)] && $::env($name) ne $value} {return}
	} elseif {[info exists ::env($name)]} {
		return
	} else {
		append-path ROCM_NIGHTLY_MODULE $name
	}
	setenv $name $value
}
proc _rocm_nightly_list {verb name dir} {
	set key "$name=$dir"
	set mine [_rocm_nightly_mine $key]
	if {$mine == 0} {return}
	if {$mine == -1 && [info exists ::env($name)] && [lsearch -exact [split $::env($name) :] $dir] >= 0} {return}
	append-path ROCM_NIGHTLY_MODULE $key
	$verb $name $dir
}
`

// Lua is the environment as a module for Lmod.
func (e *Environment) Lua() string {
	var b strings.Builder
	b.WriteString("whatis(" + quoteLua(e.About) + ")\nconflict(\"rocm-nightly\", \"rocm\")\n" + luaHead)
	for _, v := range e.Set {
		b.WriteString("set(" + quoteLua(v.Name) + ", " + quoteLua(v.Value) + ")\n")
	}
	for _, s := range e.Lists {
		b.WriteString("list(" + s.verb("_path") + ", " + quoteLua(s.Name) + ", " + quoteLua(s.Dir) + ")\n")
	}
	return b.String()
}

const luaHead = `local own = ":" .. (os.getenv("ROCM_NIGHTLY_MODULE") or "") .. ":"
local leaving = mode() == "unload"
local function mine(key)
   return own:find(":" .. key .. ":", 1, true) ~= nil
end
local function set(name, value)
   local now = os.getenv(name)
   if leaving and not mine(name) or not leaving and now ~= nil then return end
   append_path("ROCM_NIGHTLY_MODULE", name)
   if leaving and now ~= value then return end
   setenv(name, value)
end
local function list(verb, name, dir)
   local key = name .. "=" .. dir
   local now = ":" .. (os.getenv(name) or "") .. ":"
   if leaving and not mine(key) or not leaving and now:find(":" .. dir .. ":", 1, true) then return end
   append_path("ROCM_NIGHTLY_MODULE", key)
   verb(name, dir)
end
`
