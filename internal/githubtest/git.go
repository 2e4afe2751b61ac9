package githubtest

import (
	"bytes"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// network is the objects of a repository and its forks, which share them.
type network struct {
	s   *Server
	dir string
}

func (s *Server) network() *network {
	n := &network{s, filepath.Join(s.dir, strconv.FormatInt(s.id(), 10)+".git")}
	if _, err := n.run(nil, nil, "init", "--bare", "--quiet", n.dir); err != nil {
		s.t.Errorf("githubtest: %v", err)
	}
	return n
}

// run runs git, with nothing of the user's configuration.
func (n *network) run(stdin []byte, env []string, args ...string) (string, error) {
	cmd := exec.Command("git", args...)
	cmd.Stdin = bytes.NewReader(stdin)
	cmd.Env = append([]string{
		"GIT_DIR=" + n.dir, "GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_GLOBAL=/dev/null", "HOME=" + n.s.dir, "PATH=" + os.Getenv("PATH"), "LC_ALL=C",
	}, env...)
	var out, bad bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &bad
	if err := cmd.Run(); err != nil {
		return out.String(), fmt.Errorf("git %s: %w: %s", args[0], err, bad.String())
	}
	return out.String(), nil
}

func (n *network) line(args ...string) string {
	out, err := n.run(nil, nil, args...)
	if err != nil {
		return ""
	}
	return strings.TrimSpace(out)
}

// kind is commit, tree or blob, "" for what is not there.
func (n *network) kind(id string) string {
	if len(id) != 40 {
		return ""
	}
	return n.line("cat-file", "-t", id)
}

func (n *network) blob(text []byte) (string, error) {
	out, err := n.run(text, nil, "hash-object", "-w", "--stdin")
	return strings.TrimSpace(out), err
}

// change is a path of a tree, as it shall be; no id deletes it.
type change struct{ path, mode, id string }

// tree makes the tree of base with changes in it.
func (n *network) tree(base string, changes []change) (string, error) {
	index, err := os.CreateTemp(n.s.dir, "index")
	if err != nil {
		return "", err
	}
	_ = index.Close()
	_ = os.Remove(index.Name()) // git makes it; an empty one is none
	defer os.Remove(index.Name())
	env := []string{"GIT_INDEX_FILE=" + index.Name()}
	if base != "" {
		if _, err := n.run(nil, env, "read-tree", base); err != nil {
			return "", err
		}
	}
	var lines bytes.Buffer
	for _, c := range changes {
		mode, id := c.mode, c.id
		if id == "" {
			mode, id = "0", strings.Repeat("0", 40)
		}
		fmt.Fprintf(&lines, "%s %s\t%s\x00", mode, id, c.path)
	}
	if _, err := n.run(lines.Bytes(), env, "update-index", "-z", "--index-info"); err != nil {
		return "", err
	}
	out, err := n.run(nil, env, "write-tree")
	return strings.TrimSpace(out), err
}

// signature is who made a commit, and when.
type signature struct {
	Name  string    `json:"name"`
	Email string    `json:"email"`
	Date  time.Time `json:"date"`
}

func (u *user) signature() signature {
	return signature{u.login, fmt.Sprintf("%d+%s@users.noreply.github.com", u.id, u.login), time.Now().UTC().Truncate(time.Second)}
}

func (n *network) commit(tree string, parents []string, message string, author, committer signature) (string, error) {
	args := []string{"commit-tree", tree}
	for _, p := range parents {
		args = append(args, "-p", p)
	}
	date := func(s signature) string { return fmt.Sprintf("%d +0000", s.Date.Unix()) }
	out, err := n.run([]byte(message), []string{
		"GIT_AUTHOR_NAME=" + author.Name, "GIT_AUTHOR_EMAIL=" + author.Email, "GIT_AUTHOR_DATE=" + date(author),
		"GIT_COMMITTER_NAME=" + committer.Name, "GIT_COMMITTER_EMAIL=" + committer.Email, "GIT_COMMITTER_DATE=" + date(committer),
	}, args...)
	return strings.TrimSpace(out), err
}

// entry is a line of a tree.
type entry struct {
	mode, kind, id, path string
	size                 int64
}

func (n *network) list(tree string, recursive bool) ([]entry, error) {
	args := []string{"ls-tree", "-z", "-l"}
	if recursive {
		args = append(args, "-r", "-t")
	}
	out, err := n.run(nil, nil, append(args, tree)...)
	if err != nil {
		return nil, err
	}
	var all []entry
	for _, line := range strings.Split(strings.TrimSuffix(out, "\x00"), "\x00") {
		head, path, ok := strings.Cut(line, "\t")
		f := strings.Fields(head)
		if !ok || len(f) != 4 {
			continue
		}
		size, _ := strconv.ParseInt(f[3], 10, 64)
		all = append(all, entry{f[0], f[1], f[2], path, size})
	}
	return all, nil
}

// commitInfo is what a commit says.
type commitInfo struct {
	id, tree, message string
	parents           []string
	author, committer signature
}

func (n *network) look(id string) (*commitInfo, *refusal) {
	if n.kind(id) != "commit" {
		return nil, notFound()
	}
	out := n.line("show", "-s", "--format=%T%x00%P%x00%an%x00%ae%x00%at%x00%cn%x00%ce%x00%ct%x00%B", id)
	f := strings.SplitN(out, "\x00", 9)
	if len(f) != 9 {
		return nil, refuse(http.StatusInternalServerError, "git show says %q", out)
	}
	at := func(s string) time.Time {
		seconds, _ := strconv.ParseInt(s, 10, 64)
		return time.Unix(seconds, 0).UTC()
	}
	return &commitInfo{
		id: id, tree: f[0], parents: strings.Fields(f[1]), message: strings.TrimRight(f[8], "\n"),
		author: signature{f[2], f[3], at(f[4])}, committer: signature{f[5], f[6], at(f[7])},
	}, nil
}

// merge makes the tree of two commits' merge; false if they conflict.
func (n *network) merge(ours, theirs string) (string, bool) {
	out, err := n.run(nil, nil, "merge-tree", "--write-tree", ours, theirs)
	tree, _, _ := strings.Cut(out, "\n")
	return tree, err == nil
}
