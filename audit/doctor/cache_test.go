package doctor_test

import (
	"fmt"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"

	"github.com/rocm-nightly/rocm-nightly/audit/doctor"
	"github.com/rocm-nightly/rocm-nightly/audit/doctor/recorded"
)

// Two ROCms in ld.so.cache whose libraries have different names live side by
// side; where one takes the place of the other's they do not.
func TestTwoROCmsInTheCache(t *testing.T) {
	for _, c := range []struct {
		comgr  string // of the distribution
		broken int
	}{{"libamd_comgr.so.2", 0}, {"libamd_comgr.so.3", 1}} {
		cache := fmt.Sprintf(`[["libamd_comgr.so.3", "/opt/rocm/lib/libamd_comgr.so.3"], ["libamdhip64.so.7", "/opt/rocm/lib/libamdhip64.so.7"],
			["libamdhip64.so.5", "/usr/lib/x86_64-linux-gnu/libamdhip64.so.5"], [%q, "/usr/lib/x86_64-linux-gnu/%s"]]`, c.comgr, c.comgr)
		a := &txtar.Archive{Files: []txtar.File{{Name: "machine.json", Data: []byte(`{"Cache": ` + cache + `}`)}}}
		for _, name := range []string{"/opt/rocm/lib/libamd_comgr.so.3", "/opt/rocm/lib/libamdhip64.so.7", "/usr/lib/x86_64-linux-gnu/libamdhip64.so.5", "/usr/lib/x86_64-linux-gnu/" + c.comgr} {
			a.Files = append(a.Files, txtar.File{Name: name, Data: []byte("x")})
		}
		s, _, err := recorded.Load(a, kfdDir)
		if err != nil {
			t.Fatal(err)
		}
		r, err := doctor.Run(t.Context(), s, doctor.Options{Table: table(t)})
		if err != nil || r.Counts.Broken != c.broken {
			t.Errorf("%s: %v %+v", c.comgr, err, r.Sections)
		}
	}
}
