package secret

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

func env(pairs ...string) func(string) string {
	return func(key string) string {
		for i := 0; i < len(pairs); i += 2 {
			if pairs[i] == key {
				return pairs[i+1]
			}
		}
		return ""
	}
}

func write(t *testing.T, name, text string, mode os.FileMode) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(path, mode); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestRead(t *testing.T) {
	const key = "-----BEGIN KEY-----\nabc\n-----END KEY-----"
	file := write(t, "token", marker+"\n", 0o600)
	credential := write(t, "forge.token", "  "+key+"\r\n", 0o444)
	for _, c := range []struct {
		name   string
		source Source
		want   string
	}{
		{"environment", Source{Env: "T"}, marker},
		{"file, less its last line's end", Source{File: file}, marker},
		{"credential of several lines", Source{Credential: "forge.token"}, key},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := c.source.Read(env("T", marker, credentialsDirectory, filepath.Dir(credential)))
			if err != nil || got.Reveal() != c.want {
				t.Errorf("Read = %q, %v; want %q", got.Reveal(), err, c.want)
			}
		})
	}
}

func TestReadRefuses(t *testing.T) {
	pipe := filepath.Join(t.TempDir(), "pipe")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	open := write(t, "it's open", marker, 0o640)
	for _, c := range []struct {
		name   string
		source Source
		env    func(string) string
		want   string
	}{
		{"no place", Source{}, env(), "no place is named"},
		{"two places", Source{Env: "A", File: "/a"}, env(), "more than one place"},
		{"unset variable", Source{Env: "A"}, env(), "variable A is not set"},
		{"only space", Source{Env: "A"}, env("A", " \n"), "nothing but space"},
		{"zero byte", Source{Env: "A"}, env("A", "secret\x00text"), "no text"},
		{"relative file", Source{File: "token"}, env(), "whole path"},
		{"no such file", Source{File: "/nonexistent/token"}, env(), "no such file"},
		{"directory", Source{File: t.TempDir()}, env(), "no regular file"},
		{"pipe that nobody writes to", Source{File: pipe}, env(), "no regular file"},
		{"others can read it", Source{File: open}, env(), "chmod 600 '" + strings.ReplaceAll(open, "'", `'\''`) + "'"},
		{"large", Source{File: write(t, "large", strings.Repeat("secret", maxSize/6+1), 0o600)}, env(), "larger than 64 KiB"},
		{"no service manager", Source{Credential: "token"}, env(), "LoadCredential=token"},
		{"relative directory", Source{Credential: "token"}, env(credentialsDirectory, "run"), "whole path"},
		{"credential above", Source{Credential: "../token"}, env(credentialsDirectory, "/"), "no name of a credential"},
		{"hidden credential", Source{Credential: ".token"}, env(credentialsDirectory, "/"), "no name of a credential"},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := c.source.Read(c.env)
			if err == nil || !strings.Contains(err.Error(), c.want) || !got.Empty() {
				t.Fatalf("Read = %q, %v; want an error with %q", got.Reveal(), err, c.want)
			}
			if strings.Contains(err.Error(), marker) || strings.Contains(err.Error(), "secret\x00") {
				t.Errorf("the error tells the secret: %v", err)
			}
		})
	}
}

func TestReadToken(t *testing.T) {
	if got, err := (Source{Env: "T"}).ReadToken(env("T", marker+"\n")); err != nil || got.Reveal() != marker {
		t.Errorf("ReadToken = %v, %v", got, err)
	}
	for _, text := range []string{"two words", "two\nlines", "tökenlong", "esc\x1b[2J"} {
		got, err := Source{Env: "T"}.ReadToken(env("T", text))
		if err == nil || !got.Empty() || strings.Contains(err.Error(), text) {
			t.Errorf("ReadToken(%q) = %q, %v", text, got.Reveal(), err)
		}
	}
	if _, err := (Source{}).ReadToken(env()); err == nil {
		t.Error("no place: no error")
	}
}
