package config

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"strings"

	"github.com/rocm-nightly/rocm-nightly/internal/trusted"
)

// Files lists the files that c names, by their keys: keys, certificates, secrets,
// headers, the lock, and the programs that are started by their whole path.
func (c *Config) Files() []Named {
	var all []Named
	namedIn(reflect.ValueOf(c).Elem(), "", &all)
	if filepath.IsAbs(c.Policy.Lock) {
		all = append(all, Named{Key: "policy.lock", Path: c.Policy.Lock})
	}
	if len(c.Health.Command) > 0 && filepath.IsAbs(c.Health.Command[0]) {
		all = append(all, Named{Key: "health.command", Path: c.Health.Command[0], Program: true})
	}
	for i, b := range c.Bump {
		for j, argv := range b.Check {
			if len(argv) > 0 && filepath.IsAbs(argv[0]) {
				all = append(all, Named{Key: fmt.Sprintf("bump[%d].check[%d]", i, j), Path: argv[0], Program: true})
			}
		}
	}
	return all
}

// Named is a file that the config names.
type Named struct {
	Key     string // that names it
	Path    string // absolute
	Secret  bool   // it holds a token or a key, and is read only if nobody but its owner can
	Private bool   // it may hold one
	Program bool   // it is started
}

// namedIn collects the keys that end in _file, _cert or _key and hold a path.
func namedIn(v reflect.Value, key string, all *[]Named) {
	switch v.Kind() {
	case reflect.Pointer:
		if !v.IsNil() {
			namedIn(v.Elem(), key, all)
		}
	case reflect.Struct:
		for _, k := range keysOf(v.Type()) {
			name, of := join(key, k.name), v.Field(k.index)
			if of.Kind() == reflect.String {
				nameFile(name, k.name, of.String(), all)
				continue
			}
			namedIn(of, name, all)
		}
	case reflect.Slice:
		for i := range v.Len() {
			namedIn(v.Index(i), fmt.Sprintf("%s[%d]", key, i), all)
		}
	case reflect.Map:
		for _, k := range v.MapKeys() {
			namedIn(v.MapIndex(k), join(key, k.String()), all)
		}
	}
}

func nameFile(key, name, path string, all *[]Named) {
	file := strings.HasSuffix(name, "_file") || strings.HasSuffix(name, "_cert") || strings.HasSuffix(name, "_key")
	if !file || !filepath.IsAbs(path) { // policy.lock_key is a key itself
		return
	}
	private := map[string]bool{"headers_file": true, "client_key": true, "tls_key": true}[name]
	open := name == "ca_file" || strings.HasSuffix(name, "_cert")
	*all = append(*all, Named{Key: key, Path: path, Secret: !private && !open, Private: private})
}

// guarded refuses files that decide what is done and that somebody else could write.
// Those that are not there, or cannot be looked at, are for whoever wants to read
// them to report.
func (c *Config) guarded(rule trusted.Rule) error {
	var wrong []*Complaint
	for _, f := range c.Files() {
		err := rule.Check(f.Path)
		if why := (*trusted.Error)(nil); errors.As(err, &why) {
			wrong = append(wrong, c.complaint(f.Key, why))
		}
	}
	if etc := c.Host.Etc; etc != "" && rule.Root() {
		if why := (*trusted.Error)(nil); errors.As(rule.CheckNearest(etc), &why) {
			wrong = append(wrong, c.complaint("host.etc", why))
		}
	}
	return inOrder(wrong)
}

// ErrShown is matched by the error about a key that others than its owner can read.
// Such a file is used; those that hold a token are not.
var ErrShown = errors.New("others than its owner can read it (run chmod 600)")

// Unusable reports what keeps this process from using a file that the config names,
// nil if nothing does.
func (f Named) Unusable() error {
	at, err := os.Open(f.Path) // of a program too: the interpreter of a script opens it
	if f.Program && errors.Is(err, fs.ErrPermission) {
		err = nil
	}
	if err != nil {
		return err
	}
	if at != nil {
		err = at.Close()
	}
	info, statErr := os.Stat(f.Path)
	switch {
	case err != nil || statErr != nil:
		return errors.Join(err, statErr)
	case !info.Mode().IsRegular():
		return fmt.Errorf("%s is no regular file", f.Path)
	case f.Program && info.Mode().Perm()&0o111 == 0:
		return fmt.Errorf("%s is no program (run chmod +x, or name another)", f.Path)
	case f.Secret && info.Mode().Perm()&0o077 != 0:
		return fmt.Errorf("%s can be read by others than its owner, mode %#o (run chmod 600)", f.Path, info.Mode().Perm())
	case f.Private && info.Mode().Perm()&0o007 != 0:
		return fmt.Errorf("%s: %w", f.Path, ErrShown)
	}
	return nil
}
