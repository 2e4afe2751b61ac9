package gfx

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
)

func sysOf(machine string) fs.FS { return os.DirFS(filepath.Join("testdata", "kfd", machine)) }

func TestDetect(t *testing.T) {
	for machine, tt := range map[string]struct {
		taken []string
		left  []string
		cus   []int // of all GPUs, by node
	}{
		"ryzen-rx7900":    {[]string{"gfx1100"}, []string{"gfx1036"}, []int{96, 2}},
		"ryzen-alone":     {[]string{"gfx1036"}, nil, []int{2}},
		"strixhalo-mi50":  {[]string{"gfx906", "gfx1151"}, nil, []int{40, 60}},
		"four-mi50":       {[]string{"gfx906"}, nil, []int{60, 60, 60, 60}},
		"renoir-one-node": {[]string{"gfx90c"}, nil, []int{7}},
	} {
		m, err := known.Detect(sysOf(machine))
		if err != nil {
			t.Errorf("%s: %v", machine, err)
			continue
		}
		var left []string
		for _, l := range m.LeftOut {
			left = append(left, l.Target)
		}
		var cus []int
		for _, g := range m.GPUs {
			cus = append(cus, g.CUs)
			if g.Memory < 1<<29 || g.Name == "" {
				t.Errorf("%s: %+v", machine, g)
			}
		}
		if !slices.Equal(m.Taken, tt.taken) || !slices.Equal(left, tt.left) || !slices.Equal(cus, tt.cus) {
			t.Errorf("%s: taken %v, left out %v, compute units %v", machine, m.Taken, left, cus)
		}
	}
}

// What is left out is named, with how to include it.
func TestLeftOutSaysHowToInclude(t *testing.T) {
	m, err := known.Detect(sysOf("ryzen-rx7900"))
	if err != nil || len(m.LeftOut) != 1 {
		t.Fatalf("%+v, %v", m, err)
	}
	out := m.LeftOut[0]
	if out.Node != 2 || !out.Integrated || !out.DisplayOnly || out.CUs != 2 {
		t.Errorf("%+v", out)
	}
	for _, want := range []string{"gfx1036", "2 compute units", "--arch gfx1036", "target: gfx1036"} {
		if !strings.Contains(out.Reason, want) {
			t.Errorf("%q is not in: %s", want, out.Reason)
		}
	}
	if m.GPUs[0].Integrated || m.GPUs[0].DisplayOnly {
		t.Errorf("%+v", m.GPUs[0])
	}
}

func machine(nodes ...string) fstest.MapFS {
	sys := fstest.MapFS{}
	for i, properties := range nodes {
		sys[nodesDir+"/"+string(rune('0'+i))+"/properties"] = &fstest.MapFile{Data: []byte(properties)}
	}
	return sys
}

func TestDetectDecides(t *testing.T) {
	for name, tt := range map[string]struct {
		sys  fs.FS
		want []string
	}{
		"most compute units first": {machine(
			"simd_count 128\nsimd_per_cu 2\ngfx_target_version 120001\n", "simd_count 440\nsimd_per_cu 4\ngfx_target_version 90010\n"), []string{"gfx90a", "gfx1201"}},
		"a partitioned GPU is as large as its partitions together": {machine(
			"simd_count 192\nsimd_per_cu 2\ngfx_target_version 110000\nlocation_id 768\ndomain 0\n",
			"simd_count 152\nsimd_per_cu 4\ngfx_target_version 90402\nlocation_id 1280\ndomain 1\n",
			"simd_count 152\nsimd_per_cu 4\ngfx_target_version 90402\nlocation_id 268436736\ndomain 1\n",
			"simd_count 152\nsimd_per_cu 4\ngfx_target_version 90402\nlocation_id 536872192\ndomain 1\n"), []string{"gfx942", "gfx1100"}},
		"two cards are not one": {machine(
			"simd_count 192\nsimd_per_cu 2\ngfx_target_version 110000\nlocation_id 768\ndomain 0\n",
			"simd_count 240\nsimd_per_cu 4\ngfx_target_version 90006\nlocation_id 1280\ndomain 0\n",
			"simd_count 240\nsimd_per_cu 4\ngfx_target_version 90006\nlocation_id 1280\ndomain 1\n"), []string{"gfx1100", "gfx906"}},
		"discrete before integrated of one size": {machine(
			"simd_count 24\nsimd_per_cu 2\ngfx_target_version 110003\n", "simd_count 24\nsimd_per_cu 2\ngfx_target_version 100304\n"), []string{"gfx1034", "gfx1103"}},
		"lower node first of one size": {machine(
			"gfx_target_version 110000\n", "gfx_target_version 90006\n"), []string{"gfx1100", "gfx906"}},
		"an unknown integrated GPU of two units lights a desktop": {machine(
			"cpu_cores_count 16\nsimd_count 4\nsimd_per_cu 2\ngfx_target_version 130007\n", "simd_count 64\nsimd_per_cu 2\ngfx_target_version 110002\n"), []string{"gfx1102"}},
		"a small discrete GPU is taken": {machine(
			"simd_count 4\nsimd_per_cu 2\ngfx_target_version 130007\n", "simd_count 64\nsimd_per_cu 2\ngfx_target_version 110002\n"), []string{"gfx1102", "gfx1307"}},
		"a compute-class APU beside a card is taken": {machine(
			"simd_count 24\nsimd_per_cu 2\ngfx_target_version 110003\n", "simd_count 64\nsimd_per_cu 2\ngfx_target_version 110002\n"), []string{"gfx1102", "gfx1103"}},
		"two that light desktops are both taken": {machine(
			"simd_count 4\nsimd_per_cu 2\ngfx_target_version 100306\n", "simd_count 4\nsimd_per_cu 2\ngfx_target_version 100307\n"), []string{"gfx1036", "gfx1037"}},
		"known to light a desktop, of a size that is not told": {machine(
			"gfx_target_version 100306\n", "gfx_target_version 110002\n"), []string{"gfx1102"}},
		"nonsense is passed over": {machine(
			"gfx_target_version nonsense\n", "gfx_target_version -1\n", "gfx_target_version 99999999999999999999\n", "gfx_target_version 110099\n", "", "gfx_target_version 90402"), []string{"gfx942"}},
	} {
		m, err := known.Detect(tt.sys)
		if err != nil || !slices.Equal(m.Taken, tt.want) {
			t.Errorf("%s: %+v, %v", name, m, err)
		}
	}
}

func TestNodesAreNumbersInOrder(t *testing.T) {
	sys := fstest.MapFS{
		nodesDir + "/10/properties":  {Data: []byte("gfx_target_version 90006\n")},
		nodesDir + "/2/properties":   {Data: []byte("gfx_target_version 110000\n")},
		nodesDir + "/-1/properties":  {Data: []byte("gfx_target_version 110003\n")},
		nodesDir + "/two/properties": {Data: []byte("gfx_target_version 110001\n")},
		nodesDir + "/3/properties":   {Data: []byte("gfx_target_version 110002\n")},
		nodesDir + "/3/gpu_id":       {Data: []byte("0\n")}, // a CPU, whatever else it says
	}
	m, err := known.Detect(sys)
	if err != nil || !slices.Equal(m.Taken, []string{"gfx1100", "gfx906"}) || m.GPUs[1].Node != 10 {
		t.Errorf("%+v, %v", m, err)
	}
}

// guarded refuses to open what is in one directory, as the kernel does for
// the nodes of GPUs that a container was not given.
type guarded struct {
	fs.FS
	dir string
}

func (g guarded) Open(name string) (fs.File, error) {
	if strings.HasPrefix(name, g.dir+"/") {
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrPermission}
	}
	return g.FS.Open(name)
}

func TestDetectInAContainer(t *testing.T) {
	// One of two GPUs was given.
	m, err := known.Detect(guarded{sysOf("strixhalo-mi50"), nodesDir + "/2"})
	if err != nil || !slices.Equal(m.Taken, []string{"gfx1151"}) {
		t.Errorf("%+v, %v", m, err)
	}
	// None was.
	_, err = known.Detect(guarded{sysOf("ryzen-alone"), nodesDir + "/1"})
	if !errors.Is(err, ErrNoGPU) || !strings.Contains(err.Error(), "may not be read") {
		t.Error(err)
	}
}

func TestDetectFindsNone(t *testing.T) {
	for name, want := range map[string]string{"none": "are CPUs", "no-kfd": "amdgpu"} {
		m, err := known.Detect(sysOf(name))
		if !errors.Is(err, ErrNoGPU) || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "--arch") {
			t.Errorf("%s: %+v, %v", name, m, err)
		}
	}
	if _, err := known.Detect(sysOf("no-kfd")); err == nil || !strings.Contains(err.Error(), "/sys/class/kfd") {
		t.Error(err)
	}
}

func FuzzProperties(f *testing.F) {
	f.Add("cpu_cores_count 0\nsimd_count 192\nsimd_per_cu 2\ngfx_target_version 110000\nunique_id 18446744073709551615\n")
	f.Add("gfx_target_version 90010")
	f.Add("simd_count 9223372036854775807\nsimd_per_cu 1\ngfx_target_version 990000\nheap_type 1\nsize_in_bytes 9223372036854775807\n")
	f.Add("simd_count -9\nsimd_per_cu 2\ngfx_target_version 110000\nheap_type 1\nsize_in_bytes -5\n")
	f.Fuzz(func(t *testing.T, text string) {
		sys := machine(text, text)
		sys[nodesDir+"/0/mem_banks/0/properties"] = &fstest.MapFile{Data: []byte(text)}
		sys[nodesDir+"/0/mem_banks/1/properties"] = &fstest.MapFile{Data: []byte(text)}
		m, err := known.Detect(sys)
		if err != nil {
			return
		}
		for _, g := range m.GPUs {
			if !targetRE.MatchString(g.Target) || g.CUs < 0 || g.Memory < 0 {
				t.Fatalf("%+v", g)
			}
		}
		if len(m.Taken) != 1 || len(m.GPUs) != 2 {
			t.Fatalf("%+v", m)
		}
	})
}
