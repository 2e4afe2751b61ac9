//go:build heavy

package repack

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rocm-nightly/rocm-nightly/audit"
)

const hipProgram = `#include <hip/hip_runtime.h>
__global__ void set(int *p) { *p = 1; }
int main() { int n = 0; (void)hipGetDeviceCount(&n); set<<<1, 1>>>(nullptr); return 0; }
`

// hipPackage is what CMake's own export writes for a library of a tree.
const hipPackage = `get_filename_component(_IMPORT_PREFIX "${CMAKE_CURRENT_LIST_FILE}" PATH)
get_filename_component(_IMPORT_PREFIX "${_IMPORT_PREFIX}" PATH)
get_filename_component(_IMPORT_PREFIX "${_IMPORT_PREFIX}" PATH)
get_filename_component(_IMPORT_PREFIX "${_IMPORT_PREFIX}" PATH)
add_library(hip::host SHARED IMPORTED)
set_target_properties(hip::host PROPERTIES IMPORTED_LOCATION "${_IMPORT_PREFIX}/lib/libamdhip64.so"
  INTERFACE_INCLUDE_DIRECTORIES "${_IMPORT_PREFIX}/include" INTERFACE_COMPILE_DEFINITIONS __HIP_PLATFORM_AMD__=1)
`

const hipProject = `cmake_minimum_required(VERSION 3.16)
project(program CXX)
find_package(hip REQUIRED)
add_executable(program program.cpp)
target_link_libraries(program hip::host)
install(TARGETS program DESTINATION bin)
`

// hipLanguage is what CMake's own language for HIP takes from a tree.
const hipLanguage = `get_filename_component(prefix "${CMAKE_CURRENT_LIST_DIR}/../../.." ABSOLUTE)
add_library(hip-lang::device INTERFACE IMPORTED)
add_library(hip-lang::amdhip64 SHARED IMPORTED)
set_target_properties(hip-lang::amdhip64 PROPERTIES IMPORTED_LOCATION "${prefix}/lib/libamdhip64.so")
set_target_properties(hip-lang::device PROPERTIES INTERFACE_INCLUDE_DIRECTORIES "$<$<COMPILE_LANGUAGE:HIP>:${prefix}/include>"
  INTERFACE_LINK_LIBRARIES hip-lang::amdhip64 INTERFACE_LINK_OPTIONS "$<$<LINK_LANGUAGE:HIP>:--hip-link>")
set(_CMAKE_HIP_DEVICE_RUNTIME_TARGET "hip-lang::device")
`

const hipLanguageProject = `cmake_minimum_required(VERSION 3.21)
project(program HIP)
add_executable(program program.hip)
install(TARGETS program DESTINATION bin)
`

// A program that was built today, whichever way the compiler was called, still
// finds its libraries when today's generation is gone.
func TestProgramsOutliveTheirGeneration(t *testing.T) {
	tarball := os.Getenv("ROCM_NIGHTLY_CORPUS_TARBALL")
	if tarball == "" {
		t.Skip("set ROCM_NIGHTLY_CORPUS_TARBALL to what scripts/corpus.sh --print prints")
	}
	slot, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	o := Options{FinalPrefix: slot + "/current", Audit: AuditOptions{Refuse: audit.RefuseNever}}
	one, two := slot+"/generations/1", slot+"/generations/2"
	if _, err := repackFile(t, tarball, one, o); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(os.Mkdir(two, 0o755), os.Symlink("generations/1", slot+"/current"), os.Symlink("current", slot+"/rocm")); err != nil {
		t.Fatal(err)
	}
	if _, err := Clone(context.Background(), one, two, o); err != nil {
		t.Fatal(err)
	}
	work := t.TempDir()
	programs := builtPrograms(t, slot, work)
	for how, program := range programs {
		if text, err := exec.Command("readelf", "-dW", program).CombinedOutput(); err != nil || strings.Contains(string(text), "generations") {
			t.Errorf("%s: %v\n%s", how, err, text)
		}
	}
	if err := errors.Join(os.Remove(slot+"/current"), os.Symlink("generations/2", slot+"/current"), os.RemoveAll(one)); err != nil {
		t.Fatal(err)
	}
	for how, program := range programs {
		text, err := exec.Command("/lib64/ld-linux-x86-64.so.2", "--list", program).CombinedOutput()
		if err != nil || !strings.Contains(string(text), "libamdhip64.so.5 => "+slot+"/current/") {
			t.Errorf("%s: %v\n%s", how, err, text)
		}
	}
}

// builtPrograms builds a HIP program in every way, and tells where each is.
func builtPrograms(t *testing.T, slot, work string) map[string]string {
	t.Helper()
	source := filepath.Join(work, "program.hip")
	if err := os.WriteFile(source, []byte(hipProgram), 0o644); err != nil {
		t.Fatal(err)
	}
	// hipcc asks for a library that Debian has in another package.
	if out, err := exec.Command("ar", "cr", work+"/libclang_rt.builtins-x86_64.a").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	programs := map[string]string{}
	for _, via := range []string{"rocm", "current", "generations/1"} {
		for _, compiler := range []string{"llvm/bin/clang++", "bin/amdclang++", "bin/hipcc"} {
			how := via + "/" + compiler
			program := filepath.Join(work, strings.ReplaceAll(how, "/", "-"))
			link := "--hip-link"
			if strings.HasSuffix(compiler, "hipcc") {
				link = "-L" + work
			}
			cmd := exec.Command(filepath.Join(slot, how), "--offload-arch=gfx1030", link, source, "-o", program)
			if out, err := cmd.CombinedOutput(); err != nil {
				t.Fatalf("%s: %v\n%s", how, err, out)
			}
			programs[how] = program
		}
		if _, err := exec.LookPath("cmake"); err == nil && via != "generations/1" {
			prefix, dir := filepath.Join(slot, via), filepath.Join(work, "cmake", via)
			programs["cmake by "+via] = cmakeProgram(t, prefix, dir+"/cxx", "hip", hipPackage, hipProject)
			programs["cmake's HIP by "+via] = cmakeProgram(t, prefix, dir+"/hip", "hip-lang", hipLanguage, hipLanguageProject)
		}
	}
	return programs
}

// cmakeProgram builds a program with a package of a tree, which it puts there, for
// as long as Debian's names a directory of another depth.
func cmakeProgram(t *testing.T, prefix, dir, name, pack, project string) string {
	t.Helper()
	config := prefix + "/opt/rocm/lib/cmake/" + name + "/" + name + "-config.cmake"
	if err := errors.Join(os.MkdirAll(dir, 0o755), os.RemoveAll(config), os.WriteFile(config, []byte(pack), 0o444)); err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{
		"CMakeLists.txt": project, "program.hip": hipProgram,
		"program.cpp": "#include <hip/hip_runtime_api.h>\nint main() { int n = 0; return hipGetDeviceCount(&n) == hipSuccess; }\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	clang := prefix + "/llvm/bin/clang++"
	for _, args := range [][]string{
		{"-S", dir, "-B", dir + "/build", "-DCMAKE_CXX_COMPILER=" + clang, "-DCMAKE_HIP_COMPILER=" + clang, "-DCMAKE_HIP_ARCHITECTURES=gfx1030",
			"-DCMAKE_PREFIX_PATH=" + prefix, "-DCMAKE_INSTALL_PREFIX=" + dir + "/inst", "-DCMAKE_INSTALL_RPATH_USE_LINK_PATH=ON"},
		{"--build", dir + "/build"}, {"--install", dir + "/build"},
	} {
		if out, err := exec.Command("cmake", args...).CombinedOutput(); err != nil {
			t.Fatalf("cmake %v: %v\n%s", args, err, out)
		}
	}
	return dir + "/inst/bin/program"
}
