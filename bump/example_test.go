package bump_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"

	"github.com/rocm-nightly/rocm-nightly/bump"
)

// A bump of a flake in a bare repository, as it would run against any remote.
func ExampleRun() {
	dir, err := os.MkdirTemp("", "example-*")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)
	remote := filepath.Join(dir, "flake.git")
	setUp := exec.Command("sh", "-c", `git init -q --bare -b main flake.git && git init -q -b main w && cd w &&
		echo '{ version = "10.2.0a20260928"; }' >flake.nix && git add . &&
		git -c user.name=me -c user.email=me@localhost commit -qm first && git push -q ../flake.git main`)
	setUp.Dir = dir
	if out, err := setUp.CombinedOutput(); err != nil {
		fmt.Println(err, string(out))
		return
	}

	repo := bump.Repo{
		Name: "flake",
		URL:  remote,
		Files: []bump.File{{
			Path: "flake.nix", Format: "nix", Target: "gfx1151",
			Set: map[string]string{"version": "{{.Version}}"},
		}},
	}
	pins := map[string]bump.Pin{"gfx1151": {Version: "10.2.0a20260930", Target: "gfx1151"}}
	res, err := bump.Run(context.Background(), repo, pins, bump.Options{WorkDir: dir})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(res.Message)
	// Output: pushed rocm: 10.2.0a20260928 -> 10.2.0a20260930 (gfx1151) to branch rocm-nightly/flake
}
