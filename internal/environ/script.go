package environ

import (
	"fmt"
	"path"
	"slices"
	"strings"
)

// Shells lists the names that Shell takes.
func Shells() []string {
	return []string{"sh", "bash", "dash", "ash", "ksh", "mksh", "zsh", "fish", "csh", "tcsh", "nu"}
}

// Shell is the shell of a name or path, such as $SHELL has it; ok is false for
// one that nothing is known of.
func Shell(name string) (shell string, ok bool) {
	name = path.Base(name)
	return name, slices.Contains(Shells(), name)
}

// Script is the environment as text for a shell to evaluate. That of csh is one
// line, and made for the environment env: csh puts lines together.
func (e *Environment) Script(shell string, env []string) (string, error) {
	switch shell {
	case "fish":
		return e.fish(), nil
	case "nu":
		return e.nu(), nil
	case "csh", "tcsh":
		return change(shell, env, e.Enter(env))
	}
	if !slices.Contains(Shells(), shell) {
		return "", unknown(shell)
	}
	return e.sh(), nil
}

// LeaveScript is the way back from whatever is entered in env, as text for a
// shell to evaluate; "" if nothing is.
func LeaveScript(shell string, env []string) (string, error) {
	return change(shell, env, Leave(env))
}

func unknown(shell string) error {
	return fmt.Errorf("shell %q is not known: use one of %s", shell, strings.Join(Shells(), ", "))
}

// change is what makes one environment of another, in the words of a shell.
func change(shell string, from, to []string) (string, error) {
	if !slices.Contains(Shells(), shell) {
		return "", unknown(shell)
	}
	var b strings.Builder
	names := map[string]bool{}
	for _, kv := range slices.Concat(from, to) {
		name, _, _ := strings.Cut(kv, "=")
		if names[name] || !plainName.MatchString(name) {
			continue
		}
		names[name] = true
		was, had := vars(from).get(name)
		now, has := vars(to).get(name)
		switch {
		case had && !has:
			b.WriteString(unset(shell, name))
		case has && (!had || was != now):
			b.WriteString(assign(shell, name, now))
		}
	}
	return b.String(), nil
}

func unset(shell, name string) string {
	switch shell {
	case "fish":
		return "set -e " + name + "\n"
	case "csh", "tcsh":
		return "unsetenv " + name + ";"
	case "nu":
		return "hide-env " + name + "\n"
	}
	return "unset " + name + "\n"
}

func assign(shell, name, value string) string {
	switch shell {
	case "fish":
		if strings.HasSuffix(name, "PATH") {
			return "set -gx --path " + name + " (string split : -- " + quoteFish(value) + ")\n"
		}
		return "set -gx " + name + " " + quoteFish(value) + "\n"
	case "csh", "tcsh":
		return "setenv " + name + " " + quoteCsh(value) + ";"
	case "nu":
		if name == "PATH" {
			return "$env.PATH = (" + quoteNu(value) + " | split row (char esep))\n"
		}
		return "$env." + name + " = " + quoteNu(value) + "\n"
	}
	return "export " + name + "=" + QuoteSh(value) + "\n"
}

// Files are the files that stand for the environment in the etc/ of a prefix, by
// their path in it: all that a shell or a module command reads. shell is a POSIX
// shell, by an absolute path without blanks; version names the module.
func (e *Environment) Files(shell, version string) map[string]string {
	module := "etc/modulefiles/rocm-nightly/" + version
	return map[string]string{
		FileName:         e.JSON(),
		"etc/env.sh":     e.sh(),
		"etc/env.fish":   e.fish(),
		"etc/env.nu":     e.nu(),
		"etc/env.csh":    e.csh(shell, path.Join(e.Prefix, "etc/env-csh.sh")),
		"etc/env-csh.sh": e.cshHelper(),
		module:           e.Tcl(),
		module + ".lua":  e.Lua(),
	}
}
