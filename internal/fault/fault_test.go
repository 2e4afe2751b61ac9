package fault_test

import (
	"bytes"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/rocm-nightly/rocm-nightly/internal/fault"
)

// forms is by which function a point of each form is passed.
var forms = map[string]fault.Form{"Point": fault.Step, "Do": fault.Step, "Call": fault.Sys, "Write": fault.Bytes}

// TestEveryPointIsListed: the list is the source's, each point is there once.
func TestEveryPointIsListed(t *testing.T) {
	found := map[string]fault.Form{}
	err := filepath.WalkDir("../..", func(path string, e fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case e.IsDir() && (e.Name() == "fault" || e.Name() == "testdata" || e.Name() == ".git"):
			return filepath.SkipDir
		case e.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go"):
			return nil
		}
		return calls(t, path, found)
	})
	if err != nil {
		t.Fatal(err)
	}
	listed := map[string]bool{}
	for _, p := range fault.Points() {
		if listed[p.Name] {
			t.Errorf("%s is listed twice", p.Name)
		}
		listed[p.Name] = true
		switch form, ok := found[p.Name]; {
		case !ok:
			t.Errorf("%s is listed, and not in the source", p.Name)
		case form != p.Form:
			t.Errorf("%s is listed as a %s, and is a %s", p.Name, p.Form, form)
		}
	}
	for name := range found {
		if !listed[name] {
			t.Errorf("%s is in the source, and not listed: no test will reach it", name)
		}
	}
}

// calls adds the points that a file passes.
func calls(t *testing.T, path string, found map[string]fault.Form) error {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
	if err != nil {
		return err
	}
	ast.Inspect(file, func(n ast.Node) bool {
		call, ok := n.(*ast.CallExpr)
		if !ok {
			return true
		}
		sel, ok := call.Fun.(*ast.SelectorExpr)
		if !ok {
			return true
		}
		pkg, ok := sel.X.(*ast.Ident)
		form, known := forms[sel.Sel.Name]
		if !ok || pkg.Name != "fault" || !known {
			return true
		}
		lit, ok := call.Args[0].(*ast.BasicLit)
		if !ok {
			t.Errorf("%s: a point whose name is not written out", path)
			return true
		}
		name, err := strconv.Unquote(lit.Value)
		if _, twice := found[name]; err != nil || twice {
			t.Errorf("%s: %s is there twice, or no name: %v", path, name, err)
		}
		found[name] = form
		return true
	})
	return nil
}

func TestKinds(t *testing.T) {
	if slices.Contains(fault.Step.Kinds(), "short") || !slices.Contains(fault.Bytes.Kinds(), "short") {
		t.Error("short is for bytes")
	}
	if len(fault.Names()) != len(fault.Points()) {
		t.Error("every point has a name")
	}
}

// TestNothingIsArmed: whatever the build, a point that nobody armed is passed.
func TestNothingIsArmed(t *testing.T) {
	var b bytes.Buffer
	n, err := fault.Write("x", &b, []byte("all of it"))
	if n != 9 || err != nil || b.String() != "all of it" {
		t.Errorf("%d, %v, %q", n, err, b.String())
	}
	if fault.Point("x") != nil || fault.Call("x") != nil {
		t.Error("a point failed")
	}
}
