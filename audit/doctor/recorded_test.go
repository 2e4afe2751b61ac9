package doctor_test

import (
	"bytes"
	"context"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"

	"github.com/rocm-nightly/rocm-nightly/audit/doctor"
	"github.com/rocm-nightly/rocm-nightly/audit/doctor/recorded"
	"github.com/rocm-nightly/rocm-nightly/internal/amd"
	"github.com/rocm-nightly/rocm-nightly/internal/gfx"
)

var update = flag.Bool("update", false, "write what the doctor says into testdata")

const kfdDir = "../../internal/gfx/testdata/kfd"

// table is what is built in of GPUs.
func table(t testing.TB) *gfx.Table {
	t.Helper()
	return gfx.New(amd.Builtin())
}

// families are what AMD publishes.
var families = []string{"gfx900", "gfx906", "gfx908", "gfx90a", "gfx90c", "gfx94X-dcgpu", "gfx950-dcgpu", "gfx125X-dcgpu", "gfx101X-dgpu", "gfx103X-all", "gfx110X-all", "gfx1150", "gfx1151", "gfx1152", "gfx1153", "gfx120X-all", "multiarch"}

func load(t testing.TB, file string) (*doctor.System, doctor.Options, *txtar.Archive) {
	t.Helper()
	archive, err := txtar.ParseFile(file)
	if err != nil {
		t.Fatal(err)
	}
	s, m, err := recorded.Load(archive, kfdDir)
	if err != nil {
		t.Fatal(err)
	}
	return s, doctor.Options{Table: table(t), Families: families, Root: m.Root, Dir: m.Dir, User: m.User, Links: m.Want}, archive
}

// What the doctor says of each recorded machine, to the letter.
func TestRecordedMachines(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txtar")
	if err != nil || len(files) < 8 {
		t.Fatalf("%d machines: %v", len(files), err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txtar"), func(t *testing.T) {
			s, o, archive := load(t, file)
			report, err := doctor.Run(context.Background(), s, o)
			if err != nil {
				t.Fatal(err)
			}
			var got bytes.Buffer
			if err := report.Table(&got); err != nil {
				t.Fatal(err)
			}
			want := &archive.Files[len(archive.Files)-1]
			if want.Name != "want" {
				t.Fatalf("the last file is %s", want.Name)
			}
			if *update {
				want.Data = got.Bytes()
				if err := os.WriteFile(file, txtar.Format(archive), 0o644); err != nil {
					t.Fatal(err)
				}
			} else if got.String() != string(want.Data) {
				t.Errorf("it says\n%s\nnot\n%s", got.String(), want.Data)
			}
			for _, s := range report.Sections {
				for _, f := range s.Findings {
					if f.Check == "" || f.Subject == "" || f.Detail == "" || f.Why == "" || len(f.Remedy) == 0 {
						t.Errorf("not whole: %+v", f)
					}
				}
			}
		})
	}
}
