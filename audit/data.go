package audit

import (
	"path"
	"strings"

	"github.com/rocm-nightly/rocm-nightly/internal/hostpkg"
)

// optionalObjects are ELF files, by path within the ROCm tree, whose missing
// libraries break nothing that a user of ROCm starts.
var optionalObjects = table{
	{"bin/rocgdb-py*", "one rocgdb for each Python; the rocgdb script takes the one that starts"},
	{"lib/python*/**", "extension modules for several Pythons, of which a host has one"},
	{"lib/site-packages/**", "extension modules for the Python that they were built for"},
	{"**/site-packages/**", "extension modules for the Python that they were built for"},
	{"**/*.cpython-*.so", "an extension module of one Python"},
	{"lib/rocprofiler-systems/python/**", "extension modules for several Pythons"},
	{"**/tests/**", "tests"},
	{"**/test/**", "tests"},
	{"bin/*-test", "tests"},
	{"bin/*_test", "tests"},
	{"bin/test_*", "tests"},
	{"bin/*_tests", "tests"},
	{"clients/**", "tests and benchmarks"},
	{"share/**", "examples and tests; nothing is linked with them"},
	{"libexec/**/examples/**", "examples"},
}

// danglingLinks are links, by path within the ROCm tree, that are known to lead
// nowhere and that nothing follows.
var danglingLinks = table{
	{"lib/rocm_sysdeps/lib/*.so", "the name for the linker of a library that is shipped for run time only"},
	{"lib/rocm_sysdeps/share/**", "documentation of libraries of which only the code is shipped"},
	{"share/doc/**", "documentation"},
	{"share/man/**", "manual pages of commands that are left out"},
	{"**/CTestTestfile.cmake", "left over from a build directory"},
}

// builderPaths are directories of the machines that build ROCm.
var builderPaths = []builderPath{
	{prefix: "/__w/", anywhere: true},                     // GitHub runner in a container
	{prefix: "/home/runner", anywhere: true, whole: true}, // GitHub runner
	{prefix: "/therock", whole: true},                     // checkout and build directory of the containers
	{prefix: "/opt/python/"},                              // manylinux
	{prefix: "/opt/python-shared/"},                       // AMD's manylinux
}

type builderPath struct {
	prefix   string
	anywhere bool // also in the middle of a longer path: nothing else is called so
	whole    bool // the last part ends there
}

// builderPlace tells whether an absolute path is of a build machine.
func builderPlace(p string) bool {
	for _, b := range builderPaths {
		rest, ok := strings.CutPrefix(p, b.prefix)
		if ok && (!b.whole || rest == "" || rest[0] == '/') {
			return true
		}
	}
	return false
}

// systemPlaces hold interpreters on some host, if not on this one.
var systemPlaces = []string{"/bin/", "/usr/", "/sbin/", "/lib/", "/lib64/", "/nix/store/", "/gnu/store/", "/run/current-system/"}

// builderLike tells whether an interpreter can only be one of a build machine.
func builderLike(p string) bool {
	for _, s := range systemPlaces {
		if strings.HasPrefix(p, s) {
			return false
		}
	}
	return path.IsAbs(p)
}

// installHint says how to get a library or a command of the host.
func installHint(name string) string { return hostpkg.Host().Hint(name) }
