package environ

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// maxValue bounds one value, in bytes.
const maxValue = 4096

var nameRE = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]{0,127}$`)

// CheckName reports whether name can be a variable in every shell.
func CheckName(name string) error {
	if !nameRE.MatchString(name) {
		return fmt.Errorf("%q is no name of a variable: letters, digits and _ only", name)
	}
	return nil
}

// CheckValue reports whether every shell can say a value.
func CheckValue(value string) error {
	switch {
	case !utf8.ValidString(value):
		return errors.New("is not UTF-8")
	case strings.ContainsFunc(value, unicode.IsControl):
		return errors.New("holds a control character, such as a line end or a tab")
	case len(value) > maxValue:
		return fmt.Errorf("has more than %d bytes", maxValue)
	}
	return nil
}

// ours are the variables that follow from the prefix.
var ours = []string{"ROCM_PATH", "ROCM_HOME", "HIP_PATH", "PATH", "CMAKE_PREFIX_PATH", "PKG_CONFIG_PATH"}

// shells are variables that a shell, or whatever starts programs, reads itself:
// what is in them would be run, or end the shell that reads an environment file.
var shells = []string{
	"HOME", "USER", "LOGNAME", "SHELL", "TERM", "PWD", "OLDPWD", "IFS", "ENV", "PS1", "PS2", "PS3", "PS4", "PROMPT", "PROMPT_COMMAND",
	"SHELLOPTS", "FPATH", "CDPATH", "UID", "EUID", "GID", "EGID", "PPID", "RANDOM", "SECONDS", "LINENO", "OPTIND", "OPTARG",
	"GROUPS", "FUNCNAME", "DIRSTACK", "HISTCMD", "HISTFILE", "EDITOR", "VISUAL", "PAGER", "USERNAME", "SHLVL", "ZDOTDIR", "MODULEPATH", "LOADEDMODULES",
	"path", "cdpath", "fpath", "manpath", "mailpath", "psvar", "status", "pipestatus", "argv", "argc", "version", "history", "hostname", "umask", "cwd",
	"home", "shell", "user", "term", "prompt", "commands", "functions", "aliases", "options", "_", "MANPATH",
	"GCONV_PATH", "LOCPATH", "NLSPATH", "PYTHONHOME", "PYTHONPATH", "PYTHONSTARTUP", "PERL5LIB", "PERL5OPT", "RUBYOPT", "NODE_OPTIONS",
}

// Configurable reports whether a config may set name for whatever runs in the
// environment: what follows from the prefix is not its own to say, and what a
// shell or the loader takes for itself would be run by every program.
func Configurable(name string) error {
	if err := CheckName(name); err != nil {
		return err
	}
	switch {
	case slices.Contains(ours, name):
		return fmt.Errorf("%s is set from where the prefix is", name)
	case strings.HasPrefix(name, "ROCM_NIGHTLY_"):
		return fmt.Errorf("%s is this program's own: names that begin with ROCM_NIGHTLY_ are", name)
	case strings.HasPrefix(name, "LD_"):
		return fmt.Errorf("%s would change every program, through the loader: set it for the one that needs it", name)
	case slices.Contains(shells, name), strings.HasPrefix(name, "BASH"), strings.HasPrefix(name, "ZSH"), strings.HasPrefix(name, "fish_"), strings.HasPrefix(name, "FISH_"), strings.HasPrefix(name, "_"):
		return fmt.Errorf("%s is read by the shell or by every program: set it where that one is set up", name)
	}
	return nil
}
