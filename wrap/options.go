package wrap

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"path"
	"regexp"
	"slices"
	"strings"
	"unicode"

	"github.com/rocm-nightly/rocm-nightly/internal/environ"
)

// Options says what a prefix is and where it will live.
type Options struct {
	Profile     string // FHS (the default) or Nix
	FinalPrefix string // absolute; the one place of this machine that is written down, in etc/ and nix-support/; CompilerPaths adds the compiler's configuration
	Version     string // of the release; keys the compiler cache
	Digest      string // of the tarball, "sha256:" and hex; keys the compiler cache
	Target      string // gfx name, published slug or multiarch; named in the environment files
	Shell       string // absolute path of a POSIX shell for the wrappers; "" is /bin/sh
	Readlink    string // readlink(1) for wrappers called through a link; "" is the one in PATH

	Env map[string]string // more variables for the environment and the hooks, over ours; "" takes ours away
}

var (
	plainVersion = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9.+_-]{0,127}$`)
	plainDigest  = regexp.MustCompile(`^sha256:[0-9a-f]{64}$`)
)

// OptionError is returned for Options that cannot be written down safely: the
// caller, and not the tree, is to change something.
type OptionError struct {
	Option string // the field of Options: "FinalPrefix", "Profile", …
	Value  string // what it was
	Reason string // what is wrong with it and, where that helps, what to try
}

func (e *OptionError) Error() string {
	return fmt.Sprintf("%s %q %s", optionNames[e.Option], e.Value, e.Reason)
}

// optionNames are the fields of Options in words.
var optionNames = map[string]string{
	"Profile": "profile", "FinalPrefix": "final prefix", "Version": "version", "Digest": "digest",
	"Target": "target", "Env": "variable", "Shell": "shell", "Readlink": "readlink",
}

// Check tells whether Finish takes the options, with an *OptionError when it
// does not. It looks at nothing but the options, so that it can be asked before
// a tree is unpacked.
func (o Options) Check() error {
	d := o.withDefaults()
	bad := func(option, value, reason string) error { return &OptionError{option, value, reason} }
	switch {
	case d.Profile != FHS && d.Profile != Nix:
		return bad("Profile", o.Profile, "is not known: use "+FHS+" or "+Nix)
	case !path.IsAbs(o.FinalPrefix):
		return bad("FinalPrefix", o.FinalPrefix, "is not an absolute path")
	case strings.ContainsAny(o.FinalPrefix, "\n\r\x00"):
		return bad("FinalPrefix", o.FinalPrefix, "holds a line end or NUL, which no environment file can say: choose another directory")
	case strings.ContainsFunc(o.FinalPrefix, unicode.IsControl):
		return bad("FinalPrefix", o.FinalPrefix, "holds a control character, which not every environment file can say: choose another directory")
	case strings.Contains(o.FinalPrefix, ":"):
		return bad("FinalPrefix", o.FinalPrefix, "holds a colon, which no search path can say: choose another directory")
	case o.Version != "" && !plainVersion.MatchString(o.Version):
		return bad("Version", o.Version, "is not one")
	case o.Digest != "" && !plainDigest.MatchString(o.Digest):
		return bad("Digest", o.Digest, "is not sha256: and 64 hex digits")
	case o.Target != "" && !plainVersion.MatchString(o.Target):
		return bad("Target", o.Target, "is not one")
	case !path.IsAbs(d.Shell) || strings.ContainsAny(d.Shell, " \t\n\r\x00") || len("#!"+d.Shell) > maxShebang:
		return bad("Shell", d.Shell, "cannot stand in a script's first line: name a shell by an absolute path with no blank")
	case strings.ContainsAny(d.Readlink, "\n\r\x00"):
		return bad("Readlink", d.Readlink, "holds a line end or NUL")
	}
	for _, name := range slices.Sorted(maps.Keys(o.Env)) {
		if err := errors.Join(environ.Configurable(name), environ.CheckValue(o.Env[name])); err != nil {
			return bad("Env", name+"="+o.Env[name], "cannot be set: "+err.Error())
		}
	}
	return nil
}

func (o Options) withDefaults() Options {
	o.Profile = cmp.Or(o.Profile, FHS)
	o.Shell = cmp.Or(o.Shell, "/bin/sh")
	o.Readlink = cmp.Or(o.Readlink, "readlink")
	if o.FinalPrefix != "" {
		o.FinalPrefix = path.Clean(o.FinalPrefix)
	}
	return o
}
