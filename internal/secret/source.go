package secret

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

// maxSize bounds what is read from a file, in bytes; the largest RSA key that
// ssh or a forge takes is a quarter of it.
const maxSize = 64 << 10

// credentialsDirectory is the variable in which systemd says where it has put
// the credentials of a unit: see systemd.exec(5), LoadCredential=.
const credentialsDirectory = "CREDENTIALS_DIRECTORY"

// Read returns the secret that s names: s.Env is looked up with getenv. Space
// around it is dropped. Errors say where it was looked for and never what was
// there.
//
// A file must be a regular one that nobody but its owner can read. Credentials
// are taken as they are, since systemd sees to who may read them.
func (s Source) Read(getenv func(string) string) (Secret, error) {
	if err := s.check(); err != nil {
		return Secret{}, err
	}
	var text string
	var err error
	switch {
	case s.Env != "":
		if text = getenv(s.Env); text == "" {
			err = fmt.Errorf("the environment variable %s is not set, or empty (export it, or take it out of the config)", s.Env)
		}
	case s.File != "":
		text, err = readFile(s.File, true)
	default:
		text, err = s.readCredential(getenv)
	}
	if err != nil {
		return Secret{}, err
	}
	text = strings.TrimSpace(text)
	if text == "" {
		return Secret{}, fmt.Errorf("%s holds nothing but space", s.where())
	}
	if strings.ContainsRune(text, 0) {
		return Secret{}, fmt.Errorf("%s is no text: it holds a zero byte", s.where())
	}
	return New(text), nil
}

// ReadToken is Read for a token: one word of printable ASCII, as every forge's
// tokens are, so that it fits into a header as it is.
func (s Source) ReadToken(getenv func(string) string) (Secret, error) {
	token, err := s.Read(getenv)
	if err != nil {
		return Secret{}, err
	}
	for i, c := range []byte(token.Reveal()) {
		if c <= ' ' || c > '~' {
			return Secret{}, fmt.Errorf("%s holds no token: character %d is a space, a line's end or no ASCII (put the token alone into it, on one line)", s.where(), i+1)
		}
	}
	return token, nil
}

func (s Source) check() error {
	set := 0
	for _, field := range []string{s.Env, s.File, s.Credential} {
		if field != "" {
			set++
		}
	}
	switch {
	case set == 0:
		return errors.New("no place is named for the secret: set one of env, file and credential")
	case set > 1:
		return errors.New("more than one place is named for the secret: set one of env, file and credential")
	case s.File != "" && !filepath.IsAbs(s.File):
		return fmt.Errorf("the file of a secret needs a whole path, not %q", s.File)
	case s.Credential != "" && !credentialName(s.Credential):
		return fmt.Errorf("%q is no name of a credential: letters, digits, '.', '_', '@' and '-', and no dot first", s.Credential)
	}
	return nil
}

// credentialName is what systemd takes for one, less what would leave the
// directory or need quoting.
func credentialName(s string) bool {
	if len(s) > 255 || s[0] == '.' {
		return false
	}
	return strings.IndexFunc(s, func(r rune) bool {
		letter := r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9'
		return !letter && !strings.ContainsRune("._@-", r)
	}) < 0
}

func (s Source) where() string {
	switch {
	case s.Env != "":
		return "the environment variable " + s.Env
	case s.File != "":
		return "the file " + s.File
	default:
		return "the credential " + s.Credential
	}
}

func (s Source) readCredential(getenv func(string) string) (string, error) {
	dir := getenv(credentialsDirectory)
	if dir == "" {
		return "", fmt.Errorf("credential %s: $%s is not set, so no service manager has handed one over (start it as a unit with LoadCredential=%s:FILE, or name a file instead)", s.Credential, credentialsDirectory, s.Credential)
	}
	if !filepath.IsAbs(dir) {
		return "", fmt.Errorf("credential %s: $%s is no whole path", s.Credential, credentialsDirectory)
	}
	return readFile(filepath.Join(dir, s.Credential), false)
}

// readFile reads a small regular file; private asks that others cannot.
func readFile(path string, private bool) (text string, err error) {
	// Not blocking: what is at path may be a pipe that nobody writes to.
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return "", fmt.Errorf("read the secret: %w", err)
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	info, err := f.Stat()
	switch {
	case err != nil:
		return "", fmt.Errorf("read the secret: %w", err)
	case !info.Mode().IsRegular():
		return "", fmt.Errorf("read the secret: %s is no regular file", path)
	case private && info.Mode().Perm()&0o077 != 0:
		return "", fmt.Errorf("read the secret: %s can be read by others than its owner (mode %#o): run chmod 600 %s", path, info.Mode().Perm(), shellWord(path))
	}
	data, err := io.ReadAll(io.LimitReader(f, maxSize+1))
	if err != nil {
		return "", fmt.Errorf("read the secret: %w", err)
	}
	if len(data) > maxSize {
		return "", fmt.Errorf("read the secret: %s is larger than %d KiB: that is no token and no key", path, maxSize>>10)
	}
	return string(data), nil
}

// shellWord quotes path for a command that a person may paste.
func shellWord(path string) string { return "'" + strings.ReplaceAll(path, "'", `'\''`) + "'" }
