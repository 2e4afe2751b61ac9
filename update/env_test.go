package update

import (
	"bytes"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/rocm-nightly/rocm-nightly/internal/gfx"
)

func TestEnvOfAnInstall(t *testing.T) {
	node := func(versions ...string) fstest.MapFS {
		sys := fstest.MapFS{}
		for i, v := range versions {
			sys[fmt.Sprintf("class/kfd/kfd/topology/nodes/%d/properties", i+1)] = &fstest.MapFile{Data: []byte("gfx_target_version " + v + "\n")}
		}
		return sys
	}
	kfd := func(machine string) fstest.MapFS {
		sys := fstest.MapFS{}
		if err := sysCopy(sys, machine); err != nil {
			t.Fatal(err)
		}
		return sys
	}
	own := func(kv ...string) map[string]string {
		env := map[string]string{}
		for i := 0; i < len(kv); i += 2 {
			env[kv[i]] = kv[i+1]
		}
		return env
	}
	for name, tt := range map[string]struct {
		target, family string
		sys            fstest.MapFS
		env, want      map[string]string
		log            string
	}{
		"nothing":                       {"gfx1151", "gfx1151", node("110501"), nil, nil, ""},
		"no GPU to be seen":             {"gfx906", "gfx906", fstest.MapFS{}, nil, own(overrideName, "9.0.6"), ""},
		"built in":                      {"gfx906", "gfx906", kfd("four-mi50"), nil, own(overrideName, "9.0.6"), "gpu=gfx906"},
		"taken away":                    {"gfx906", "gfx906", kfd("four-mi50"), own(overrideName, ""), own(overrideName, ""), ""},
		"beside another GPU":            {"gfx906", "gfx906", kfd("strixhalo-mi50"), nil, own(overrideName+"_2", "9.0.6"), "gpu=gfx906"},
		"beside another GPU, the other": {"gfx1151", "gfx1151", kfd("strixhalo-mi50"), nil, nil, ""},
		"beside another GPU, insisted":  {"gfx906", "gfx906", kfd("strixhalo-mi50"), own(overrideName, "9.0.6"), own(overrideName, "9.0.6"), ""},
		"a substitute":                  {"gfx1030", "gfx1030", node("100301"), own("A", "1"), own("A", "1", overrideName, "10.3.0"), "gpu=gfx1031"},
		"a substitute, otherwise":       {"gfx1030", "gfx1030", node("100301"), own(overrideName, "10.3.2"), own(overrideName, "10.3.2"), ""},
		"a substitute beside another":   {"gfx1030", "gfx1030", node("100301", "110000"), nil, own(overrideName+"_1", "10.3.0"), "gpu=gfx1031"},
		"no substitute is needed":       {"gfx1030", "gfx1030", node("100301", "100300"), nil, nil, ""},
		"served by the family":          {"gfx1030", "gfx103X-all", node("100301"), nil, nil, ""},
		"for another machine":           {"gfx906", "gfx906", node("110501"), nil, nil, ""},
	} {
		var log bytes.Buffer
		o := Options{Log: slog.New(slog.NewTextHandler(&log, nil))}.withDefaults()
		o.Sys = tt.sys
		if got := o.env(Install{Env: tt.env}, gfx.Resolution{Target: tt.target, Family: tt.family}); !maps.Equal(got, tt.want) || got == nil != (len(tt.want) == 0) {
			t.Errorf("%s: %v, want %v", name, got, tt.want)
		}
		if !strings.Contains(log.String(), tt.log) || tt.log == "" && log.Len() > 0 {
			t.Errorf("%s: %s", name, &log)
		}
	}
}

// sysCopy reads the files of a recorded machine.
func sysCopy(to fstest.MapFS, machine string) error {
	root := filepath.Join("../internal/gfx/testdata/kfd", machine)
	return filepath.WalkDir(root, func(p string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		data, err := os.ReadFile(p)
		rel, relErr := filepath.Rel(root, p)
		if err == nil && relErr == nil {
			to[filepath.ToSlash(rel)] = &fstest.MapFile{Data: data}
		}
		return err
	})
}
