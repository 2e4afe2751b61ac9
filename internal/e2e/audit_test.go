package e2e

import (
	"bytes"
	bin "encoding/binary"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// finding is one of audit --json.
type finding struct{ Rule, Severity, Path, Subject string }

func (f finding) String() string {
	return strings.TrimSuffix(f.Severity+" "+f.Rule+" "+f.Path+" | "+f.Subject, " | ")
}

// findings audits a prefix. What the corpus has on purpose (a path of the build
// machine in a file for libtool) is left out.
func findings(t *testing.T, prefix string, args ...string) []finding {
	t.Helper()
	var report struct{ Findings []finding }
	r := run(t, nil, append([]string{"audit", prefix, "--json"}, args...)...)
	if err := json.Unmarshal([]byte(r.stdout), &report); err != nil {
		t.Fatalf("exit %d, %v: %s%s", r.code, err, r.stdout, r.stderr)
	}
	return slices.DeleteFunc(report.Findings, func(f finding) bool { return f.Rule == "leaked-path" && f.Path == "opt/rocm/lib/librocrand.la" })
}

const tree = "opt/rocm/"

// rocrand is what a lost archive means to the library of the corpus that has
// one: it has two names, by a hard link.
var rocrand = []string{
	"required kpack opt/rocm/lib/librocrand.so.1 | ../.kpack/rand_lib_@GFXARCH@.kpack",
	"required kpack opt/rocm/lib/librocrand.so.1.1 | ../.kpack/rand_lib_@GFXARCH@.kpack",
}

// corpusBreaks are one break each of the prefix that the corpus becomes, with
// what is found of it, and nothing else.
var corpusBreaks = []struct {
	name string
	do   func(t *testing.T, dir string)
	args []string
	want []string
}{
	{"nothing", func(*testing.T, string) {}, nil, nil},
	{"the hidden directory", gone(tree+".kpack", ".kpack"), nil, []string{"fatal kpack opt/rocm/.kpack | .kpack"}},
	{"the archive of the target", gone(tree + ".kpack/rand_lib_gfx1036.kpack"), nil, rocrand},
	{"a library that a host may have too", gone(tree+"lib/libhsakmt.so.1", tree+"lib/libhsakmt.so.1.0.6"), []string{"--scope", "tree"}, nil},
	{"comgr cut", cut(tree+"lib/libamd_comgr.so.2.4.0", 1<<20), nil, []string{"fatal invalid-elf opt/rocm/lib/libamd_comgr.so.2.4.0"}},
	{"comgr's string table", spoil(tree + "lib/libamd_comgr.so.2.4.0"), nil, []string{"fatal invalid-elf opt/rocm/lib/libamd_comgr.so.2.4.0"}},
	{"device libraries of the target", gone(tree + "lib/llvm/amdgcn/bitcode/oclc_isa_version_1036.bc"), nil,
		[]string{"required device-libraries opt/rocm/lib/llvm/amdgcn/bitcode | oclc_isa_version_1036.bc"}},
	{"the link to them", gone("amdgcn"), nil, []string{"required root-shape amdgcn"}},
	{"a wrapper", replaced("bin/rocminfo", "#!/bin/sh\nexec rocminfo\n", 0o555), nil, []string{"required wrapper bin/rocminfo | rocminfo"}},
	{"set-user-ID", replaced(tree+"libexec/x", "#!/bin/sh\n", 0o755|os.ModeSetuid), nil, []string{"fatal mode opt/rocm/libexec/x | set-id"}},
	{"a link out", linked(tree+"share/x", "/etc/passwd"), nil, []string{"fatal escape opt/rocm/share/x | /etc/passwd"}},
	{"a license", gone(tree + "share/doc/hipcc/copyright"), nil,
		[]string{"warning license share/licenses/rocm-nightly/hipcc-copyright | ../../../opt/rocm/share/doc/hipcc/copyright"}},
	{"rocBLAS without kernels", replaced(tree+"lib/librocblas.so.5", "x", 0o444), []string{"--arch", "gfx1030"}, nil}, // it has them
	{"rocBLAS of a target without", replaced(tree+"lib/librocblas.so.5", "x", 0o444), []string{"--arch", "gfx1031"},
		append([]string{"required kernels opt/rocm/lib/rocblas/library | gfx1031"}, rocrand...)},
	{"another night's bytes", replaced(tree+"share/therock/therock_manifest.json", `{"rocm_package_version":"10.2.0a20260901"}`, 0o444), nil,
		[]string{"warning version opt/rocm/share/therock/therock_manifest.json | 10.2.0a20260901"}},
}

func gone(names ...string) func(t *testing.T, dir string) {
	return func(t *testing.T, dir string) {
		for _, n := range names {
			if err := os.RemoveAll(filepath.Join(dir, n)); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// replaced puts a new file where one was: the old one is another tree's too.
func replaced(name, text string, mode os.FileMode) func(t *testing.T, dir string) {
	return func(t *testing.T, dir string) {
		gone(name)(t, dir)
		file := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(file, mode); err != nil {
			t.Fatal(err)
		}
	}
}

func linked(name, target string) func(t *testing.T, dir string) {
	return func(t *testing.T, dir string) {
		if err := os.Symlink(target, filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
}

func cut(name string, n int) func(t *testing.T, dir string) {
	return func(t *testing.T, dir string) {
		b := readFile(t, filepath.Join(dir, name))
		replaced(name, string(b[:n]), 0o444)(t, dir)
	}
}

// spoil makes DT_STRSZ larger than the file.
func spoil(name string) func(t *testing.T, dir string) {
	return func(t *testing.T, dir string) {
		b := readFile(t, filepath.Join(dir, name))
		le := bin.LittleEndian
		for at := le.Uint64(b[32:]); ; at += 56 { // program headers
			if le.Uint32(b[at:]) != 2 { // PT_DYNAMIC
				continue
			}
			entries := b[le.Uint64(b[at+8:]):]
			i := bytes.Index(entries, []byte{10, 0, 0, 0, 0, 0, 0, 0}) // DT_STRSZ
			le.PutUint64(entries[i+8:], 1<<40)
			replaced(name, string(b), 0o444)(t, dir)
			return
		}
	}
}

func readFile(t *testing.T, name string) []byte {
	t.Helper()
	b, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// eachBreakIsFound breaks copies of a prefix, which share its files.
func eachBreakIsFound(t *testing.T, prefix string) {
	for _, b := range corpusBreaks {
		t.Run(b.name, func(t *testing.T) {
			dir := filepath.Join(filepath.Dir(prefix), "broken")
			if out, err := exec.Command("cp", "-al", prefix, dir).CombinedOutput(); err != nil {
				t.Fatalf("cp: %v: %s", err, out)
			}
			defer os.RemoveAll(dir)
			b.do(t, dir)
			var got []string
			for _, f := range findings(t, dir, b.args...) {
				got = append(got, f.String())
			}
			slices.Sort(got)
			if !slices.Equal(got, b.want) {
				t.Errorf("got  %q\nwant %q", got, b.want)
			}
		})
	}
}

// sampleOfLdSo is how many files ld.so is asked about in a normal run.
const sampleOfLdSo = 60

var (
	notFound     = regexp.MustCompile(`(?m)^\t(\S+) => not found`)
	notThere     = regexp.MustCompile("(?m)version `([^']+)' not found \\(required by ([^)]+)\\)")
	libraryNames = regexp.MustCompile(`\.so(\.|$)`)
)

// theLoaderAgrees asks ld.so about programs and libraries of a prefix: what it
// misses is found by the audit too, and, when it was asked about all, nothing
// else is.
func theLoaderAgrees(t *testing.T, prefix string, limit int) {
	missing, wanting := map[string]bool{}, map[string]bool{}
	for _, f := range findings(t, prefix) {
		switch f.Rule {
		case "needed":
			missing[f.Subject] = true
		case "symbol-version":
			wanting[f.Subject[strings.Index(f.Subject, " ")+1:]+" "+f.Path] = true
		}
	}
	files := dynamic(t, prefix)
	step := max(1, len(files)/limit)
	asked := 0
	for i := 0; i < len(files); i += step {
		cmd := exec.CommandContext(t.Context(), "/lib64/ld-linux-x86-64.so.2", files[i])
		cmd.Env = []string{"LD_TRACE_LOADED_OBJECTS=1"}
		out, err := cmd.CombinedOutput()
		if err != nil && !bytes.Contains(out, []byte("version `")) {
			t.Errorf("%s: %v: %s", files[i], err, out)
		}
		asked++
		for _, m := range notFound.FindAllSubmatch(out, -1) {
			if !missing[string(m[1])] {
				t.Errorf("ld.so misses %s for %s, the audit does not", m[1], files[i])
			}
		}
		for _, m := range notThere.FindAllSubmatch(out, -1) {
			by, _ := filepath.Rel(prefix, string(m[2]))
			if !wanting[string(m[1])+" "+by] {
				t.Errorf("ld.so misses version %s for %s, the audit does not", m[1], by)
			}
		}
	}
	if asked < 40 {
		t.Errorf("ld.so was asked about %d files only", asked)
	}
}

// dynamic lists the files that ld.so takes.
func dynamic(t *testing.T, prefix string) []string {
	t.Helper()
	var files []string
	for name, f := range readManifest(t, prefix) {
		if e := f.ELF; e != nil && e.Class == 64 && e.Machine == "x86_64" && e.Dynamic && len(e.Needed) > 0 &&
			(f.Mode&0o111 != 0 || libraryNames.MatchString(name)) && f.Kind == "file" {
			files = append(files, filepath.Join(prefix, name))
		}
	}
	slices.Sort(files)
	return files
}
