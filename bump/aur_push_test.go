package bump

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/rocm-nightly/rocm-nightly/bump/aur"
	"github.com/rocm-nightly/rocm-nightly/internal/manifest"
	"github.com/rocm-nightly/rocm-nightly/internal/secret"
)

// aurHook is what the AUR asks of a push, as far as a bump can go wrong by it: one
// branch that only goes forward, and in each commit a PKGBUILD, a .SRCINFO that
// is of this package and can be read, no directories and no large files.
const aurHook = `#!/bin/sh
ref=$1 old=$2 new=$3
base=$(basename "$PWD" .git)
die() { echo "error: $*" >&2; exit 1; }
case $old in *[!0]*) from="^$old" ;; *) from="" ;; esac
[ "$ref" = refs/heads/master ] || die "pushing to a branch other than master is restricted"
case $new in *[!0]*) ;; *) die "master cannot be deleted" ;; esac
[ -z "$from" ] || git merge-base --is-ancestor "$old" "$new" || die "denying non-fast-forward (you should pull first)"
for c in $(git rev-list "$new" $from); do
	list=$(git ls-tree -l "$c") || die "no tree in $c"
	case $list in *" tree "*) die "the repository must not contain subdirectories: $c" ;; esac
	echo "$list" | awk '$4 > 256000 { exit 1 }' || die "maximum blob size (250.00KiB) exceeded: $c"
	for f in PKGBUILD .SRCINFO; do git cat-file -e "$c:$f" 2>/dev/null || die "missing $f: $c"; done
	info=$(git cat-file blob "$c:.SRCINFO")
	echo "$info" | grep -qvE '^(	?[a-z0-9_]+ = .+)?$' && die ".SRCINFO cannot be read: $c"
	[ "$(echo "$info" | sed -n 's/^pkgbase = //p')" = "$base" ] || die "invalid pkgbase, expected $base: $c"
	for key in pkgver pkgrel arch; do echo "$info" | grep -q "^	$key = " || die "missing mandatory field: $key: $c"; done
	install=$(echo "$info" | sed -n 's/^	install = //p')
	[ -z "$install" ] || git cat-file -e "$c:$install" 2>/dev/null || die "missing install file: $install: $c"
done
exit 0
`

const aurName = "rocm-nightly-gfx1151-bin"

// aurRemote is a bare repository that takes what the AUR takes.
type aurRemote struct {
	t    *testing.T
	bare string
	work string
}

func newAURRemote(t *testing.T) *aurRemote {
	t.Helper()
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("git is missing: apt install git")
	}
	dir := t.TempDir()
	r := &aurRemote{t, filepath.Join(dir, aurName+".git"), filepath.Join(dir, "work")}
	r.git(dir, "init", "-q", "--bare", "-b", "master", r.bare)
	if err := os.WriteFile(filepath.Join(r.bare, "hooks", "update"), []byte(aurHook), 0o755); err != nil {
		t.Fatal(err)
	}
	r.git(dir, "init", "-q", "-b", "master", r.work)
	r.git(r.work, "remote", "add", "origin", r.bare)
	r.publish(aurNight("10.2.0a20260929", "0a"), "first")
	return r
}

func (r *aurRemote) git(dir string, args ...string) string {
	r.t.Helper()
	cmd := exec.Command("git", args...)
	cmd.Dir, cmd.Env = dir, gitEnvironment()
	out, err := cmd.CombinedOutput()
	if err != nil {
		r.t.Fatalf("git %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return strings.TrimSpace(string(out))
}

// publish commits a package as a maintainer does, and pushes it.
func (r *aurRemote) publish(p Pin, message string) {
	r.t.Helper()
	if _, err := aurPackage(r.t, p).Write(r.work, false); err != nil {
		r.t.Fatal(err)
	}
	r.git(r.work, "add", "-A")
	r.git(r.work, "commit", "-q", "-m", message)
	r.git(r.work, "push", "-q", "origin", "master")
}

func (r *aurRemote) file(name string) string {
	r.t.Helper()
	return r.git(r.bare, "show", "master:"+name)
}

func (r *aurRemote) commits() string {
	r.t.Helper()
	return r.git(r.bare, "rev-list", "--count", "master")
}

func (r *aurRemote) repo(url string) Repo {
	return Repo{Name: "aur", Forge: "git", URL: url, Mode: "push", Files: []File{{
		Path: "PKGBUILD", Target: "gfx1151", Set: map[string]string{"pkgver": "{{.Version}}", "sha256sums_x86_64[0]": "{{.Hex}}"},
	}}}
}

func (r *aurRemote) options(env map[string]string) Options {
	look := func(name string) string {
		if v, ok := env[name]; ok {
			return v
		}
		return os.Getenv(name)
	}
	return Options{WorkDir: r.t.TempDir(), Env: look, Now: func() time.Time { return time.Unix(1_790_000_000, 0) }}
}

// brings runs a bump that is to bring version, and looks at what is there.
func (r *aurRemote) brings(repo Repo, p Pin, env map[string]string) *Result {
	r.t.Helper()
	o := r.options(env)
	res, err := Run(r.t.Context(), repo, map[string]Pin{"gfx1151": p}, o)
	if err != nil {
		r.t.Fatal(err)
	}
	if left, _ := os.ReadDir(o.WorkDir); len(left) != 0 {
		r.t.Errorf("left behind in the scratch directory: %v", left)
	}
	want := aurPackage(r.t, p)
	for name, text := range map[string][]byte{"PKGBUILD": want.PKGBUILD(), ".SRCINFO": want.SRCINFO(), aurName + ".install": want.Install()} {
		if got := r.file(name); got != strings.TrimSpace(string(text)) {
			r.t.Errorf("%s is not what would be written anew:\n%s\n%s", name, got, text)
		}
	}
	if refs := r.git(r.bare, "for-each-ref", "--format=%(refname)"); refs != "refs/heads/master" {
		r.t.Errorf("branches %q", refs)
	}
	return res
}

func aurNight(version, digit string) Pin {
	name := "therock-dist-linux-gfx1151-" + version + ".tar.gz"
	return Pin{
		Version: version, URL: "https://nightly.repo.amd.com/rocm/core/tarball/" + name, Name: name, Hex: strings.Repeat(digit, 32), SRI: newSRI,
		Size: 13_000_000_000, Date: "2026-09-30", Family: "gfx1151", Target: "gfx1151", Channel: "nightly",
	}
}

func aurPackage(t *testing.T, p Pin) *aur.Package {
	t.Helper()
	made, err := aur.Make(aur.Input{Pin: p, Files: []manifest.File{{Path: "lib/libamdhip64.so.7", Kind: manifest.Regular, ELF: &manifest.ELF{
		Class: 64, Machine: "x86_64", Type: "dyn", Dynamic: true, Soname: "libamdhip64.so.7", Needed: []string{"libc.so.6"},
	}}}})
	if err != nil {
		t.Fatal(err)
	}
	return made
}

// A bump of an AUR package is one commit on master that moves it forward, with
// .SRCINFO: what `init aur` would have written.
func TestPushToAnAUR(t *testing.T) {
	r := newAURRemote(t)
	repo := r.repo("file://" + r.bare)
	if res := r.brings(repo, aurNight("10.2.0a20260930", "0b"), nil); !res.Pushed || res.Action != ActionPushed || r.commits() != "2" {
		t.Errorf("%+v, %s commits", res, r.commits())
	}
	if res := r.brings(repo, aurNight("10.2.0a20260930", "0b"), nil); res.Pushed || res.Changed || r.commits() != "2" {
		t.Errorf("the same again: %+v, %s commits", res, r.commits())
	}
	// A maintainer commits in between: it stays, below ours.
	r.git(r.work, "pull", "-q", "--ff-only", "origin", "master")
	r.publish(aurNight("10.2.0a20261001", "0c"), "by hand")
	if res := r.brings(repo, aurNight("10.2.0a20261002", "0d"), nil); !res.Pushed || r.commits() != "4" {
		t.Errorf("%+v, %s commits", res, r.commits())
	}
	if log := r.git(r.bare, "log", "--format=%s", "master"); !strings.Contains(log, "by hand") {
		t.Errorf("%s", log)
	}
}

// What such a remote refuses is an error with its own words, and nothing moves.
func TestPushToAnAURIsRefused(t *testing.T) {
	for _, c := range []struct {
		name, want string
		spoil      func(r *aurRemote, repo *Repo)
	}{
		{"by a pull mode's branch", "master", func(_ *aurRemote, repo *Repo) { repo.Mode = "pull" }},
		{"for a package of another name", "pkgbase", func(r *aurRemote, repo *Repo) {
			other := filepath.Join(filepath.Dir(r.bare), "other.git")
			if err := os.Rename(r.bare, other); err != nil {
				r.t.Fatal(err)
			}
			r.bare, repo.URL = other, "file://"+other
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := newAURRemote(t)
			repo := r.repo("file://" + r.bare)
			c.spoil(r, &repo)
			before := r.git(r.bare, "rev-parse", "master")
			res, err := Run(t.Context(), repo, map[string]Pin{"gfx1151": aurNight("10.2.0a20260930", "0b")}, r.options(nil))
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%+v, %v", res, err)
			}
			if r.git(r.bare, "rev-parse", "master") != before {
				t.Error("master moved")
			}
		})
	}
}

// The key and the known hosts come from files, or from systemd's credentials,
// and no agent, home or config of this user has a say.
func TestPushToAnAUROverSSH(t *testing.T) {
	r, s := newAURRemote(t), startSSHD(t)
	repo := r.repo(fmt.Sprintf("ssh://%s@127.0.0.1:%d%s", s.user, s.port, r.bare))
	alone := map[string]string{"HOME": t.TempDir(), "SSH_AUTH_SOCK": "", "GIT_SSH_COMMAND": ""}

	repo.SSHKey, repo.KnownHosts = secret.Source{File: s.path("key")}, secret.Source{File: s.path("known_hosts")}
	if res := r.brings(repo, aurNight("10.2.0a20260930", "0b"), alone); !res.Pushed {
		t.Errorf("%+v", res)
	}

	alone["CREDENTIALS_DIRECTORY"] = s.dir
	repo.SSHKey, repo.KnownHosts = secret.Source{Credential: "key"}, secret.Source{Credential: "known_hosts"}
	if res := r.brings(repo, aurNight("10.2.0a20261001", "0c"), alone); !res.Pushed {
		t.Errorf("%+v", res)
	}

	for name, spoil := range map[string]func(*Repo){
		"a host with another key": func(b *Repo) { b.KnownHosts = secret.Source{File: s.path("wrong_hosts")} },
		"a key that is not known": func(b *Repo) { b.SSHKey = secret.Source{File: s.path("stranger")} },
		"a key that is not there": func(b *Repo) { b.SSHKey = secret.Source{File: s.path("absent")} },
	} {
		t.Run(name, func(t *testing.T) {
			b := repo
			spoil(&b)
			before := r.git(r.bare, "rev-parse", "master")
			_, err := Run(t.Context(), b, map[string]Pin{"gfx1151": aurNight("10.2.0a20261002", "0d")}, r.options(alone))
			if err == nil {
				t.Error("pushed all the same")
			} else if key := s.get(t, "key"); strings.Contains(err.Error(), strings.Split(key, "\n")[1]) {
				t.Errorf("the key is in the error: %v", err)
			}
			if r.git(r.bare, "rev-parse", "master") != before {
				t.Error("master moved")
			}
		})
	}
}

// The remote refuses what the AUR refuses, so that a bump that passes here does
// there.
func TestAURRemoteIsAsStrict(t *testing.T) {
	for _, c := range []struct {
		name, want string
		change     func(r *aurRemote)
		push       []string
	}{
		{"another branch", "other than master", func(*aurRemote) {}, []string{"HEAD:refs/heads/x"}},
		{"a rewritten commit", "non-fast-forward", func(r *aurRemote) { r.git(r.work, "commit", "-q", "--amend", "-m", "other") }, []string{"-f", "master"}},
		{"master's end", "delet", func(*aurRemote) {}, []string{":master"}},
		{"no .SRCINFO", "missing .SRCINFO", func(r *aurRemote) { r.change("rm", "-q", ".SRCINFO") }, []string{"master"}},
		{"no .install", "missing install file", func(r *aurRemote) { r.change("rm", "-q", aurName+".install") }, []string{"master"}},
		{"a subdirectory", "subdirectories", func(r *aurRemote) { r.add("sub/file", 1) }, []string{"master"}},
		{"a large file", "exceeded", func(r *aurRemote) { r.add("large", 260_000) }, []string{"master"}},
		{"a .SRCINFO of no such form", "cannot be read", func(r *aurRemote) { r.add(".SRCINFO", 100) }, []string{"master"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := newAURRemote(t)
			c.change(r)
			cmd := exec.Command("git", append([]string{"push", "origin"}, c.push...)...)
			cmd.Dir, cmd.Env = r.work, gitEnvironment()
			if out, err := cmd.CombinedOutput(); err == nil || !strings.Contains(string(out), c.want) {
				t.Errorf("%v\n%s", err, out)
			}
		})
	}
	t.Run("over ssh, with one key", func(t *testing.T) {
		r, s := newAURRemote(t), startSSHD(t)
		for key, want := range map[string]bool{"key": true, "stranger": false} {
			cmd := exec.Command("git", "ls-remote", fmt.Sprintf("ssh://%s@127.0.0.1:%d%s", s.user, s.port, r.bare))
			cmd.Env = append(gitEnvironment(), "GIT_SSH_COMMAND=ssh -F none -o BatchMode=yes -o IdentitiesOnly=yes -o UserKnownHostsFile="+s.path("known_hosts")+" -i "+s.path(key))
			if out, err := cmd.CombinedOutput(); (err == nil) != want {
				t.Errorf("%s: %v\n%s", key, err, out)
			}
		}
	})
}

// change removes a file of the work tree, in a commit.
func (r *aurRemote) change(args ...string) {
	r.t.Helper()
	r.git(r.work, args...)
	r.git(r.work, "commit", "-q", "-m", "change")
}

// add commits a file of n bytes.
func (r *aurRemote) add(name string, n int) {
	r.t.Helper()
	path := filepath.Join(r.work, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		r.t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(strings.Repeat("x", n)), 0o644); err != nil {
		r.t.Fatal(err)
	}
	r.git(r.work, "add", "-A")
	r.git(r.work, "commit", "-q", "-m", "change")
}
