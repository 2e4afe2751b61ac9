package wrap

import (
	"strings"
)

// environ is the opt-in environment: what a user who wants this ROCm for
// everything in a shell sets. A value that the user has already stays.
type environ struct {
	about   string
	scalars []variable
	lists   []search
}

type variable struct{ name, value string }

// search is one directory of a search path.
type search struct {
	name  string
	dir   string
	first bool // before what is there already; else after it
}

// environment works out the variables for a tree that will live below
// o.FinalPrefix. Only what the tree has is named. PATH comes first, so that the
// shell finds this ROCm; the others come last, so that the user's own entries are
// found before it. lib/rocm_sysdeps/lib/pkgconfig is left out on purpose: it would put
// AMD's private zlib and libdrm in the way of the system's.
func (l *layout) environment(o Options) environ {
	rocm := under(strings.TrimRight(o.FinalPrefix, "/"), treeDir)
	e := environ{about: strings.TrimSpace("ROCm " + o.Version + " " + o.Target)}
	e.scalars = []variable{
		{"ROCM_PATH", rocm}, {"ROCM_HOME", rocm}, {"HIP_PATH", rocm}, {"HIP_PLATFORM", "amd"},
	}
	if dir := "lib/llvm/amdgcn/bitcode"; l.tree.isDir(dir) {
		e.scalars = append(e.scalars, variable{"HIP_DEVICE_LIB_PATH", rocm + "/" + dir})
	}
	if file := "lib/llvm/bin/clang++"; l.tree.isFile(file) {
		e.scalars = append(e.scalars, variable{"HIPCXX", rocm + "/" + file})
	}
	e.lists = []search{
		{"PATH", under(strings.TrimRight(o.FinalPrefix, "/"), "bin"), true},
		{"CMAKE_PREFIX_PATH", rocm, false},
	}
	for _, dir := range []string{"lib/pkgconfig", "share/pkgconfig"} {
		if l.tree.isDir(dir) {
			e.lists = append(e.lists, search{"PKG_CONFIG_PATH", rocm + "/" + dir, false})
		}
	}
	if l.tree.isDir("lib") {
		e.lists = append(e.lists, search{"LD_LIBRARY_PATH", rocm + "/lib", false})
	}
	return e
}

// environmentFiles adds etc/: the opt-in environment in the syntax of each shell
// and of modules, and what a system-wide install registers.
func (l *layout) environmentFiles(o Options) {
	e := l.environment(o)
	l.file("etc/env.sh", modeFile, e.sh())
	l.file("etc/env.fish", modeFile, e.fish())
	l.file("etc/env.csh", modeFile, e.csh(o.FinalPrefix))
	l.file("etc/env.nu", modeFile, e.nu())
	l.file("etc/modulefiles/rocm-nightly.lua", modeFile, e.lua())
	l.file("etc/profile.d/rocm-nightly.sh", modeFile, e.profile())
	l.file("etc/ld.so.conf.d/rocm-nightly.conf", modeFile, ldConf(e.scalars[0].value))
	for _, lib := range []string{"lib/opencl/libamdocl64.so", "lib/libamdocl64.so"} {
		if l.tree.isFile(lib) {
			l.file("etc/OpenCL/vendors/rocm-nightly.icd", modeFile, e.scalars[0].value+"/"+lib+"\n")
			break
		}
	}
}

// sh is the environment for a POSIX shell. It needs no function and no helper
// variable, works under set -eu, and changes nothing the second time.
func (e environ) sh() string {
	var b strings.Builder
	b.WriteString("# " + e.about + ": source this file in sh, bash, dash, ksh or zsh.\n")
	for _, v := range e.scalars {
		b.WriteString(shDefault(v))
	}
	for _, s := range e.lists {
		b.WriteString(shSearch(s))
	}
	return b.String()
}

// profile is the smallest set for every login shell of a machine: our programs
// after the system's own, and where ROCm is.
func (e environ) profile() string {
	path := e.lists[0]
	path.first = false
	return "# " + e.about + " for login shells; etc/env.sh of the same prefix sets more.\n" +
		shDefault(e.scalars[0]) + shSearch(path)
}

func shDefault(v variable) string {
	return "if [ -z \"${" + v.name + "-}\" ]; then " + v.name + "=" + quoteSh(v.value) + "; fi\nexport " + v.name + "\n"
}

func shSearch(s search) string {
	value := "${@name@:+$@name@:}@dir@"
	if s.first {
		value = "@dir@${@name@:+:$@name@}"
	}
	return s.fill("case \":${@name@-}:\" in\n*:@dir@:*) ;;\n*) @name@="+value+" ;;\nesac\nexport @name@\n", quoteSh)
}

// fill puts the variable and the quoted directory into a template. It does so in
// one pass: a directory may be called anything, a mark of the template included,
// and what was put in must not be read again.
func (s search) fill(template string, quote func(string) string) string {
	return strings.NewReplacer("@name@", s.name, "@dir@", quote(s.dir)).Replace(template)
}

// fish is the environment for fish, where variables named …PATH are lists.
func (e environ) fish() string {
	var b strings.Builder
	b.WriteString("# " + e.about + ": source this file in fish.\n")
	for _, v := range e.scalars {
		b.WriteString("test -n \"$" + v.name + "\"; or set -gx " + v.name + " " + quoteFish(v.value) + "\n")
	}
	for _, s := range e.lists {
		value := "$" + s.name + " " + quoteFish(s.dir)
		if s.first {
			value = quoteFish(s.dir) + " $" + s.name
		}
		b.WriteString("contains -- " + quoteFish(s.dir) + " $" + s.name +
			"; or set -gx --path " + s.name + " " + value + "\n")
	}
	return b.String()
}

// csh is the environment for csh and tcsh. They cannot search a list safely, so
// a variable remembers which prefix was set up.
func (e environ) csh(prefix string) string {
	var b strings.Builder
	b.WriteString("# " + e.about + ": source this file in csh or tcsh.\n")
	for _, v := range e.scalars {
		b.WriteString("if ( ! $?" + v.name + " ) setenv " + v.name + " " + quoteCsh(v.value) + "\n")
	}
	b.WriteString("if ( ! $?ROCM_NIGHTLY_ENV ) setenv ROCM_NIGHTLY_ENV ''\n")
	b.WriteString("if ( \"${ROCM_NIGHTLY_ENV}\" != " + quoteCsh(prefix) + " ) then\n")
	b.WriteString("setenv ROCM_NIGHTLY_ENV " + quoteCsh(prefix) + "\n")
	for _, s := range e.lists {
		value := `"${@name@}":@dir@`
		if s.first {
			value = `@dir@:"${@name@}"`
		}
		b.WriteString(s.fill("if ( $?@name@ ) then\nsetenv @name@ "+value+"\nelse\nsetenv @name@ @dir@\nendif\n", quoteCsh))
	}
	b.WriteString("endif\n")
	return b.String()
}

// nu is the environment for Nushell, as a script to source.
func (e environ) nu() string {
	var b strings.Builder
	b.WriteString("# " + e.about + ": source this file in nu.\n")
	for _, v := range e.scalars {
		b.WriteString("$env." + v.name + " = ($env." + v.name + "? | default " + quoteNu(v.value) + ")\n")
	}
	for _, s := range e.lists {
		verb := "append"
		if s.first {
			verb = "prepend"
		}
		list := "($env." + s.name + "? | default [] | split row (char esep) | where $it != \"\" | " + verb + " " + quoteNu(s.dir) + " | uniq)"
		if s.name != "PATH" {
			list = "(" + list + " | str join (char esep))"
		}
		b.WriteString("$env." + s.name + " = " + list + "\n")
	}
	return b.String()
}

// lua is the environment as a module for Lmod, which undoes it on unload.
func (e environ) lua() string {
	var b strings.Builder
	b.WriteString("whatis(" + quoteLua(e.about) + ")\n")
	for _, v := range e.scalars {
		b.WriteString("setenv(" + quoteLua(v.name) + ", " + quoteLua(v.value) + ")\n")
	}
	for _, s := range e.lists {
		verb := "append_path"
		if s.first {
			verb = "prepend_path"
		}
		b.WriteString(verb + "(" + quoteLua(s.name) + ", " + quoteLua(s.dir) + ")\n")
	}
	return b.String()
}

// ldConf registers the libraries with ldconfig, whose files have no quoting: a
// path that its syntax would cut is not written (glibc elf/ldconfig.c,
// parse_conf).
func ldConf(rocm string) string {
	if strings.ContainsAny(rocm, " \t#=*?[\v\f") {
		return "# The path of this prefix cannot be written in this format.\n"
	}
	return rocm + "/lib\n"
}
