package house

import (
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"
)

const module = "github.com/rocm-nightly/rocm-nightly/"

// pkg is what go list tells of one package.
type pkg struct {
	ImportPath string
	Imports    []string
	GoFiles    []string
	Dir        string
	Doc        string
}

func list(t *testing.T) []pkg {
	t.Helper()
	cmd := exec.Command("go", "list", "-json=ImportPath,Imports,GoFiles,Dir,Doc", module+"...")
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	var all []pkg
	for dec := json.NewDecoder(strings.NewReader(string(out))); ; {
		var p pkg
		if err := dec.Decode(&p); errors.Is(err, io.EOF) {
			return all
		} else if err != nil {
			t.Fatal(err)
		}
		p.ImportPath = strings.TrimPrefix(p.ImportPath, module)
		all = append(all, p)
	}
}

// arrows lists, for each room, the rooms of this module that it may import.
// The leaves may be imported by everybody, but for config and demo.
var arrows = map[string][]string{
	"cmd/rocm-nightly": {"serve", "serve/state", "serve/web", "serve/metrics", "serve/notify", "serve/snapshot", "update", "repack", "store", "bump", "fetch", "unpack", "audit", "audit/diff", "audit/smoke", "wrap", "patchelf", "internal/config", "internal/demo", "audit/doctor", "bump/pinfile", "bump/forge", "bump/body", "bump/feed", "bump/actions", "bump/aur", "systemd"},
	"serve":            {"serve/state"},
	"serve/state":      {},
	"serve/web":        {"serve/state"},
	"serve/metrics":    {"serve/state"},
	"serve/notify":     {"serve/state", "update"},
	"serve/snapshot":   {"serve/state", "update", "store", "audit"},
	"update":           {"fetch", "repack", "store", "bump", "bump/body", "audit", "audit/diff", "audit/smoke"},
	"repack":           {"unpack", "patchelf", "wrap", "audit"},
	"audit":            {"patchelf", "wrap"},
	"audit/diff":       {"patchelf"},
	"audit/doctor":     {"audit", "patchelf"},
	"audit/smoke":      {"patchelf"},
	"wrap":             {"patchelf"},
	"store":            {},
	"bump":             {"bump/pinfile", "bump/forge", "bump/body", "audit/diff"},
	"bump/pinfile":     {},
	"bump/forge":       {},
	"bump/body":        {"bump/pinfile", "audit/diff"},
	"bump/feed":        {},
	"bump/actions":     {},
	"bump/aur":         {"bump/pinfile"},
	"fetch":            {},
	"unpack":           {"unpack/pgunzip"},
	"unpack/pgunzip":   {},
	"patchelf":         {},

	"internal/release":       {},
	"internal/amd":           {},
	"internal/gfx":           {},
	"internal/lockfile":      {},
	"internal/manifest":      {},
	"internal/diskspace":     {},
	"internal/omit":          {},
	"internal/directio":      {},
	"internal/environ":       {},
	"internal/config":        {},
	"internal/demo":          {},
	"internal/demo/mkcorpus": {"internal/demo"},
	"internal/cage":          {},
	"internal/plain":         {},
	"audit/doctor/recorded":  {"audit/doctor"}, // for tests
	"internal/hostpkg":       {},
	"internal/ldcache":       {},
	"internal/schema":        {},
	"internal/provenance":    {},
	"internal/secret":        {},
	"internal/priority":      {},
	"internal/trusted":       {},
	"internal/listen":        {},
	"internal/browsertest":   {}, // for tests
	"internal/githubtest":    {}, // for tests
	"docs":                   {},
	"systemd":                {},
	"internal/smallfs":       {}, // for tests
	"internal/giteatest":     {}, // for tests
	"internal/gitlabtest":    {}, // for tests
	"internal/fault":         {},
	"internal/house":         {},
	"internal/e2e":           {},
}

var leaves = []string{"internal/release", "internal/amd", "internal/gfx", "internal/lockfile", "internal/manifest", "internal/diskspace", "internal/omit", "internal/directio", "internal/cage", "internal/plain", "internal/hostpkg", "internal/ldcache", "internal/environ", "internal/schema", "internal/provenance", "internal/secret", "internal/priority", "internal/trusted", "internal/listen", "docs", "internal/fault"}

func TestImportsPointDown(t *testing.T) {
	for _, p := range list(t) {
		allowed, known := arrows[p.ImportPath]
		if !known {
			t.Errorf("package %s has no place in the house: add it to arrows", p.ImportPath)
		}
		for _, imp := range p.Imports {
			room, ours := strings.CutPrefix(imp, module)
			if ours && !slices.Contains(allowed, room) && !slices.Contains(leaves, room) {
				t.Errorf("%s imports %s, against the arrows", p.ImportPath, room)
			}
		}
	}
}

func TestEveryPackageStatesItsPromise(t *testing.T) {
	for _, p := range list(t) {
		if p.Doc == "" || !slices.Contains(p.GoFiles, "doc.go") {
			t.Errorf("%s has no doc.go with a package comment", p.ImportPath)
		}
	}
}

// Every module that is linked, or that tests use, is listed with its reason.
func TestDependenciesAreListed(t *testing.T) {
	doc, err := os.ReadFile("../../docs/dependencies.md")
	if err != nil {
		t.Fatal(err)
	}
	mod, err := os.ReadFile("../../go.mod")
	if err != nil {
		t.Fatal(err)
	}
	required := regexp.MustCompile(`(?m)^\t(\S+) v\S+( // indirect)?$`).FindAllStringSubmatch(string(mod), -1)
	if len(required) < 10 {
		t.Fatalf("only %d modules found in go.mod", len(required))
	}
	for _, m := range required {
		if !strings.Contains(string(doc), "`"+m[1]+"`") {
			t.Errorf("docs/dependencies.md does not say why %s is needed", m[1])
		}
	}
	for _, m := range regexp.MustCompile("(?m)^\\| `([^`]+)`").FindAllStringSubmatch(string(doc), -1) {
		if !strings.Contains(string(mod), "\t"+m[1]+" v") {
			t.Errorf("docs/dependencies.md lists %s, which go.mod does not have", m[1])
		}
	}
}

// The program never ends, sleeps or panics in the middle of a room.
func TestNoSuddenEnds(t *testing.T) {
	bad := regexp.MustCompile(`\b(panic|log\.Fatal\w*|os\.Exit|time\.Sleep)\(|^func init\(`)
	for _, p := range list(t) {
		for _, name := range p.GoFiles {
			if p.ImportPath == "cmd/rocm-nightly" && name == "main.go" || strings.HasSuffix(p.ImportPath, "/mkcorpus") {
				continue
			}
			src, err := os.ReadFile(p.Dir + "/" + name)
			if err != nil {
				t.Fatal(err)
			}
			for i, line := range strings.Split(string(src), "\n") {
				if code, _, _ := strings.Cut(line, "//"); bad.MatchString(code) {
					t.Errorf("%s/%s:%d: %s", p.ImportPath, name, i+1, strings.TrimSpace(line))
				}
			}
		}
	}
}
