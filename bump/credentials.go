package bump

import (
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"strings"

	"github.com/rocm-nightly/rocm-nightly/internal/secret"
)

// readToken returns the token that repo names, "" when it names none.
func readToken(repo Repo, env func(string) string) (string, error) {
	if repo.Token.Empty() {
		return "", nil
	}
	token, err := repo.Token.ReadToken(env)
	if err != nil {
		return "", fmt.Errorf("read token: %w", err)
	}
	return token.Reveal(), nil
}

// secretsOf lists the forms of the token that must not be shown.
func secretsOf(forge, user, token string) []string {
	if token == "" {
		return nil
	}
	return []string{basic(forge, user, token), token, url.QueryEscape(token), url.PathEscape(token)}
}

// sshCommand returns what GIT_SSH_COMMAND shall be, "" where ssh knows for
// itself: the key and the known hosts are written below scratch for it.
func sshCommand(repo Repo, env func(string) string, scratch string) (string, error) {
	if repo.SSHKey.Empty() && repo.KnownHosts.Empty() {
		return "", nil
	}
	words := []string{"ssh", "-o", "BatchMode=yes", "-o", "ConnectTimeout=30", "-o", "StrictHostKeyChecking=yes"}
	for _, f := range []struct {
		source  secret.Source
		key     string // in the config
		name    string
		options []string // before the file's name
	}{
		{repo.SSHKey, "ssh_key", keyCopy, []string{"IdentitiesOnly=yes", "IdentityFile="}},
		{repo.KnownHosts, "known_hosts", "known-hosts", []string{"GlobalKnownHostsFile=none", "UserKnownHostsFile="}},
	} {
		if f.source.Empty() {
			continue
		}
		path, err := writeSecret(f.source, env, scratch, f.name)
		if err != nil {
			return "", fmt.Errorf("read %s: %w", f.key, err)
		}
		last := len(f.options) - 1
		for _, option := range f.options[:last] {
			words = append(words, "-o", option)
		}
		// ssh expands %, and takes a space for the end of a name.
		words = append(words, "-o", f.options[last]+`"`+strings.ReplaceAll(path, "%", "%%")+`"`)
	}
	for i, w := range words {
		words[i] = shellQuote(w)
	}
	return strings.Join(words, " "), nil
}

// writeSecret writes what source names to a file that only we can read.
func writeSecret(source secret.Source, env func(string) string, scratch, name string) (string, error) {
	s, err := source.Read(env)
	if err != nil {
		return "", err
	}
	if s.Empty() {
		return "", errors.New("there is nothing in it")
	}
	path := filepath.Join(scratch, name)
	if strings.ContainsAny(path, "\"\n") {
		return "", fmt.Errorf("the scratch directory %q has a name that ssh cannot take", scratch)
	}
	// ssh refuses a key without the newline at its end.
	if err := os.WriteFile(path, []byte(strings.TrimSpace(s.Reveal())+"\n"), 0o600); err != nil {
		return "", fmt.Errorf("write a copy for ssh: %w", err)
	}
	return path, nil
}

// keyCopy is the name of the copy of the key that ssh is given.
const keyCopy = "ssh-key"

// hideKey takes the copy of the ssh key away from scratch; back puts it there
// again.
func hideKey(scratch string) (back func() error, err error) {
	path := filepath.Join(scratch, keyCopy)
	key, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return func() error { return nil }, nil
	}
	if err == nil {
		err = os.Remove(path)
	}
	if err != nil {
		return nil, err
	}
	return func() error { return os.WriteFile(path, key, 0o600) }, nil
}

// shellQuote makes one word of s for the shell that git runs
// GIT_SSH_COMMAND with.
func shellQuote(s string) string { return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'" }
