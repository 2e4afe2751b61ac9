package bump

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"strconv"
	"strings"
	"syscall"
)

const (
	maxTreeFiles = 500_000 // of a checkout
	maxTreeBytes = 8 << 30
	maxLink      = 4096
	maxTreeList  = 256 << 20 // bytes of the list of a tree
)

// node is one entry of a tree.
type node struct{ mode, oid, path string }

// materialise writes a tree below dir: files first, then links, so that no
// file is written through a link. No filter, attribute, hook or line ending has
// a say. A link that leads out of the tree becomes a file that says where to, as
// git makes of it where there are no links; a submodule is an empty directory.
func (g *git) materialise(ctx context.Context, tree, dir string) (err error) {
	nodes, err := g.listTree(ctx, tree)
	if err != nil {
		return err
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return fmt.Errorf("check out: %w", err)
	}
	defer func() { err = errors.Join(err, root.Close()) }()
	var files, links []node
	for _, n := range nodes {
		switch n.mode {
		case "120000":
			links = append(links, n)
		case "160000":
			if err := root.MkdirAll(n.path, 0o755); err != nil {
				return fmt.Errorf("check out %s: %w", n.path, err)
			}
		default:
			files = append(files, n)
		}
	}
	for _, batch := range [][]node{files, links} {
		if err := g.writeNodes(ctx, root, batch); err != nil {
			return err
		}
	}
	return nil
}

// listTree lists all files of a tree.
func (g *git) listTree(ctx context.Context, tree string) ([]node, error) {
	var nodes []node
	err := g.stream(ctx, nil, func(r *bufio.Reader) error {
		for {
			line, err := r.ReadString(0)
			if errors.Is(err, io.EOF) && line == "" {
				return nil
			}
			if err != nil {
				return err
			}
			meta, name, _ := strings.Cut(strings.TrimSuffix(line, "\x00"), "\t")
			fields := strings.Fields(meta)
			if len(fields) != 3 {
				return fmt.Errorf("list tree %.12s: %.60q is no entry", tree, line)
			}
			if err := checkEntry(name); err != nil {
				return err
			}
			if nodes = append(nodes, node{fields[0], fields[2], name}); len(nodes) > maxTreeFiles {
				return fmt.Errorf("list tree %.12s: it has more than %d files", tree, maxTreeFiles)
			}
		}
	}, "ls-tree", "-r", "-z", "--full-tree", tree)
	return nodes, err
}

// checkEntry refuses paths that git would not check out. What a name is encoded
// in is nobody's business.
func checkEntry(name string) error {
	for part := range strings.SplitSeq(name, "/") {
		switch {
		case part == "", part == ".", part == "..", strings.ContainsRune(part, 0):
			return fmt.Errorf("check out %.100q: not a path inside the checkout", name)
		case strings.EqualFold(part, ".git"):
			return fmt.Errorf("check out %.100q: a tree must not hold .git", name)
		}
	}
	return nil
}

// writeNodes writes the blobs of nodes, all of them by one git.
func (g *git) writeNodes(ctx context.Context, root *os.Root, nodes []node) error {
	if len(nodes) == 0 {
		return nil
	}
	var ask bytes.Buffer
	for _, n := range nodes {
		ask.WriteString(n.oid + "\n")
	}
	left := int64(maxTreeBytes)
	return g.stream(ctx, ask.Bytes(), func(r *bufio.Reader) error {
		for _, n := range nodes {
			head, err := r.ReadString('\n')
			if err != nil {
				return fmt.Errorf("read %s: %w", n.path, err)
			}
			fields := strings.Fields(head)
			if len(fields) != 3 || fields[1] != "blob" {
				return fmt.Errorf("read %s: git says %.100q of it", n.path, oneLine(head))
			}
			size, err := strconv.ParseInt(fields[2], 10, 64)
			if left -= size; err != nil || size < 0 || left < 0 {
				return fmt.Errorf("check out %s: the tree has more than %d bytes", n.path, int64(maxTreeBytes))
			}
			if err := writeNode(root, n, io.LimitReader(r, size), size); err != nil {
				return fmt.Errorf("check out %s: %w", n.path, err)
			}
			if _, err := r.Discard(1); err != nil {
				return fmt.Errorf("read %s: %w", n.path, err)
			}
		}
		return nil
	}, "cat-file", "--batch")
}

func writeNode(root *os.Root, n node, r io.Reader, size int64) (err error) {
	if dir := path.Dir(n.path); dir != "." {
		if err := root.MkdirAll(dir, 0o755); err != nil {
			return err
		}
	}
	if n.mode == "120000" && size <= maxLink {
		target, err := io.ReadAll(r)
		if err != nil {
			return err
		}
		if staysInside(n.path, string(target)) {
			return root.Symlink(string(target), n.path)
		}
		r = bytes.NewReader(target)
	}
	mode := fs.FileMode(0o644)
	if n.mode == "100755" {
		mode = 0o755
	}
	f, err := root.OpenFile(n.path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
	if err != nil {
		return err
	}
	_, err = io.Copy(f, r)
	return errors.Join(err, f.Close())
}

// staysInside reports whether a link at name leads to a place in the tree. Links
// upwards count from where the link is, and only at the beginning: behind the
// name of another link, ".." would lead up from where that one leads to.
func staysInside(name, target string) bool {
	if target == "" || path.IsAbs(target) || strings.ContainsRune(target, 0) {
		return false
	}
	named := false
	for part := range strings.SplitSeq(target, "/") {
		if named && part == ".." {
			return false
		}
		named = named || part != ".." && part != "." && part != ""
	}
	joined := path.Join(path.Dir(name), target)
	return joined != ".." && !strings.HasPrefix(joined, "../")
}

// stream runs git and reads what it prints as it comes.
func (g *git) stream(ctx context.Context, input []byte, read func(*bufio.Reader) error, args ...string) error {
	cmd := exec.CommandContext(ctx, g.bin, args...)
	cmd.Dir = g.dir
	cmd.Env = append(g.env[:len(g.env):len(g.env)], "GIT_DIR="+g.dir)
	cmd.Stdin = bytes.NewReader(input)
	var stderr headBuffer
	cmd.Stderr = &stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = killDelay
	out, err := cmd.StdoutPipe()
	if err != nil {
		return fmt.Errorf("git %s: %w", args[0], err)
	}
	if err := cmd.Start(); err != nil {
		return g.failure(args[0], err, "")
	}
	readErr := read(bufio.NewReaderSize(io.LimitReader(out, maxTreeBytes+maxTreeList), 1<<16))
	if readErr != nil {
		_ = cmd.Cancel()
	}
	err = cmd.Wait()
	switch {
	case ctx.Err() != nil:
		return fmt.Errorf("git %s %s: %w", args[0], g.shown, ctx.Err())
	case readErr != nil:
		return readErr
	case err != nil:
		return g.failure(args[0], err, stderr.String())
	}
	return nil
}
