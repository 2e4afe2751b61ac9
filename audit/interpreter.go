package audit

import (
	"context"
	"path"
	"strings"
)

// interpreters checks what the kernel starts programs with: the first line of
// scripts, and PT_INTERP.
func interpreters(_ context.Context, a *auditor) error {
	for _, e := range a.tree.all {
		switch {
		case !e.isFile():
		case e.script != "":
			a.checked["scripts"]++
			a.script(e)
		case e.hostELF() && e.elf.Interp != "":
			a.checked["programs"]++
			a.loaderOf(e)
		}
	}
	return nil
}

// started tells whether users or other programs start what is in this place.
func (a *auditor) started(e *entry) bool {
	in, ok := a.tree.ofROCm(e.path)
	if !ok {
		in = e.path
	}
	return strings.HasPrefix(in, "bin/") || strings.HasPrefix(in, "libexec/")
}

// script checks one script. One without execute permission is read by others,
// who choose the interpreter: only what a build machine left is worth a word.
func (a *auditor) script(e *entry) {
	name, command := shebang(e.script)
	if broken := unstartable(e.script); broken != "" && e.executable() && path.IsAbs(name) {
		a.file(Finding{Rule: RuleInterpreter, Severity: Warning, Path: e.path, Subject: strings.TrimSpace(e.script),
			Detail: "cannot be started: " + broken, Hint: "correct its first line"})
		return
	}
	switch {
	case name == "":
		return
	case !path.IsAbs(name):
		if e.executable() && a.started(e) {
			a.file(Finding{Rule: RuleInterpreter, Severity: Warning, Path: e.path, Subject: name,
				Detail: "starts with " + name + ", which is no absolute name: the kernel looks for it in the working directory",
				Hint:   "its first line must be #!/usr/bin/env and the name of a program"})
		}
		return
	case !a.interpreterMissing(name):
		if command != "" && e.executable() {
			a.command(e, command)
		}
		return
	case !builderLike(name) && !e.executable():
		return
	}
	f := Finding{Rule: RuleInterpreter, Severity: Warning, Path: e.path, Subject: name,
		Detail: "starts with " + name + ", which is not on this host", Hint: installHint(path.Base(name))}
	if builderLike(name) {
		f.Detail = "starts with " + name + ", which only the machine that built it has"
		f.Hint = "repack it: its first line must be #!/usr/bin/env " + path.Base(name)
		if e.executable() && a.started(e) {
			f.Severity = Required
		}
	}
	a.file(f)
}

// interpreterMissing tells whether nothing of that name is here, as far as the
// scope lets it be judged.
func (a *auditor) interpreterMissing(name string) bool {
	if rel, ok := a.tree.within(name); ok {
		return a.tree.follow(".", rel).entry == nil
	}
	if a.scope == ScopeTree {
		return builderLike(name)
	}
	if a.profile == "nix" && strings.HasPrefix(name, "/nix/store/") {
		return false
	}
	return !a.host.exists(name)
}

// command checks what env starts: found on the host, or beside the tree's own
// programs, which are on the PATH of whoever uses them.
func (a *auditor) command(e *entry, name string) {
	t := a.tree
	if path.IsAbs(name) {
		if a.interpreterMissing(name) {
			a.file(Finding{Rule: RuleInterpreter, Severity: Warning, Path: e.path, Subject: name,
				Detail: "is started by " + name + ", which is not on this host", Hint: installHint(path.Base(name))})
		}
		return
	}
	if a.scope == ScopeTree || a.host.command(name) || t.entries["bin/"+name] != nil || t.entries[t.inROCm("bin/"+name)] != nil {
		return
	}
	a.file(Finding{Rule: RuleInterpreter, Severity: Warning, Path: e.path, Subject: name,
		Detail: "is started by " + name + ", which is not on this host", Hint: installHint(name)})
}

// shebang splits the first line of a script, without #!: the interpreter, and
// the command when that is env.
func shebang(line string) (interpreter, command string) {
	// The kernel ends the name at a blank and passes the rest as one argument;
	// a carriage return is part of either.
	line = strings.TrimLeft(line, " \t")
	if strings.HasPrefix(line, "[") {
		return "", "" // an attribute of Rust
	}
	interpreter, rest := line, ""
	if i := strings.IndexAny(line, " \t"); i >= 0 {
		interpreter, rest = line[:i], strings.Trim(line[i:], " \t")
	}
	if path.Base(interpreter) != "env" {
		return interpreter, ""
	}
	return interpreter, envCommand(rest)
}

// envCommand is what env(1) starts: its options, and what it sets, come first.
func envCommand(args string) string {
	words := strings.Fields(args)
	for i := 0; i < len(words); i++ {
		word := words[i]
		switch {
		case word == "--":
			if i+1 < len(words) {
				return strings.Trim(words[i+1], `"'`)
			}
			return ""
		case word == "-u" || word == "-C" || word == "--unset" || word == "--chdir":
			i++ // its argument
		case strings.HasPrefix(word, "-S") || strings.HasPrefix(word, "--split-string"):
			// The one option that may hold the command itself.
			s := strings.TrimPrefix(strings.TrimPrefix(strings.TrimPrefix(word, "--split-string"), "-S"), "=")
			if s = strings.Trim(s, `"'`); s != "" && !strings.Contains(s, "=") && !strings.HasPrefix(s, "-") {
				return s
			}
		case strings.HasPrefix(word, "-") || strings.Contains(word, "="):
		default:
			return strings.Trim(word, `"'`)
		}
	}
	return ""
}

// maxShebang is how many bytes of the first line, with #!, kernels read
// (BINPRM_BUF_SIZE less one); those before 5.1 read 127, and cut it without a word.
const maxShebang = 255

// unstartable says why the kernel or env makes nothing of a first line, without
// #!, whatever the host has; "" when there is nothing to say.
func unstartable(line string) string {
	interpreter, args := strings.TrimLeft(line, " \t"), ""
	if i := strings.IndexAny(interpreter, " \t"); i >= 0 {
		interpreter, args = interpreter[:i], strings.Trim(interpreter[i:], " \t")
	}
	first, more, _ := strings.Cut(args, " ")
	switch {
	case strings.HasPrefix(interpreter, "["):
		return ""
	case strings.HasSuffix(line, "\r"):
		return "its first line ends in a carriage return, which is taken for a part of the name"
	case len("#!")+len(line) > maxShebang:
		return "its first line is longer than the 255 bytes that the kernel reads"
	case path.Base(interpreter) == "env" && more != "" && !strings.HasPrefix(first, "-") && !strings.Contains(first, "="):
		return "env looks for a program called “" + args + "”: it wants -S in front"
	}
	return ""
}

// loaderOf checks the program interpreter of an ELF file.
func (a *auditor) loaderOf(e *entry) {
	name := e.elf.Interp
	if path.IsAbs(name) && !a.interpreterMissing(name) {
		return
	}
	f := Finding{Rule: RuleInterpreter, Severity: Warning, Path: e.path, Subject: name,
		Detail: "is loaded by " + name + ", which is not on this host",
		Hint:   "repack it with --interpreter and the loader of this host"}
	if a.started(e) {
		f.Severity = Required
	}
	a.file(f)
}
