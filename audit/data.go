package audit

import (
	"path"
	"regexp"
	"strings"
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
var systemPlaces = []string{"/bin/", "/usr/", "/sbin/", "/lib/", "/lib64/", "/nix/store/", "/run/current-system/"}

// builderLike tells whether an interpreter can only be one of a build machine.
func builderLike(p string) bool {
	for _, s := range systemPlaces {
		if strings.HasPrefix(p, s) {
			return false
		}
	}
	return path.IsAbs(p)
}

// hostPackages are the Debian packages of what AMD's trees expect of a host.
var hostPackages = map[string]string{
	"libatomic.so.1":     "libatomic1",
	"libquadmath.so.0":   "libquadmath0",
	"libgfortran.so.5":   "libgfortran5",
	"libgomp.so.1":       "libgomp1",
	"libstdc++.so.6":     "libstdc++6",
	"libgcc_s.so.1":      "libgcc-s1",
	"libnuma.so.1":       "libnuma1",
	"libdrm.so.2":        "libdrm2",
	"libdrm_amdgpu.so.1": "libdrm-amdgpu1",
	"libelf.so.1":        "libelf1",
	"libdw.so.1":         "libdw1",
	"libz.so.1":          "zlib1g",
	"libzstd.so.1":       "libzstd1",
	"libbz2.so.1.0":      "libbz2-1.0",
	"liblzma.so.5":       "liblzma5",
	"libxml2.so.2":       "libxml2",
	"libcrypt.so.1":      "libcrypt1",
	"libncurses.so.6":    "libncurses6",
	"libncursesw.so.6":   "libncursesw6",
	"libtinfo.so.6":      "libtinfo6",
	"libtinfo.so.5":      "libtinfo5",
	"libedit.so.2":       "libedit2",
	"libexpat.so.1":      "libexpat1",
	"libffi.so.8":        "libffi8",
	"libsqlite3.so.0":    "libsqlite3-0",
	"libmpfr.so.6":       "libmpfr6",
	"libgmp.so.10":       "libgmp10",
	"libOpenCL.so.1":     "ocl-icd-libopencl1",
	"libibverbs.so.1":    "libibverbs1",
	"librdmacm.so.1":     "librdmacm1",
	"libmlx5.so.1":       "ibverbs-providers",
	"libhwloc.so.15":     "libhwloc15",
	"libGL.so.1":         "libgl1",
	"libEGL.so.1":        "libegl1",
	"libGLEW.so.2.2":     "libglew2.2",
	"libglut.so.3":       "libglut3.12",
	"libX11.so.6":        "libx11-6",
	"libva.so.2":         "libva2",
	"libva-drm.so.2":     "libva-drm2",
	"libpci.so.3":        "libpci3",
	"libcap.so.2":        "libcap2",
	"libudev.so.1":       "libudev1",
	"libsystemd.so.0":    "libsystemd0",
	"libssl.so.3":        "libssl3",
	"libcrypto.so.3":     "libssl3",
	"libcurl.so.4":       "libcurl4",
	"libyaml-cpp.so.0.7": "libyaml-cpp0.7",
	"libmpi.so.40":       "libopenmpi3",
	"libpapi.so.7.0":     "libpapi7.0",
	"libunwind.so.8":     "libunwind8",
	"libtbb.so.12":       "libtbb12",

	"python3": "python3",
	"python":  "python-is-python3",
	"perl":    "perl",
	"bash":    "bash",
	"sh":      "dash",
	"tclsh":   "tcl",
	"ruby":    "ruby",
	"node":    "nodejs",
	"awk":     "gawk",
	"zsh":     "zsh",
	"fish":    "fish",
}

// versionedPython matches the names that carry a version of Python.
var versionedPython = regexp.MustCompile(`\A(?:lib)?python(3\.[0-9]+)(?:\.so\.1\.0)?\z`)

// packageOf is the Debian package of a library or a command, "" if unknown.
func packageOf(name string) string {
	if m := versionedPython.FindStringSubmatch(name); m != nil {
		if strings.HasPrefix(name, "lib") {
			return "libpython" + m[1]
		}
		return "python" + m[1]
	}
	return hostPackages[name]
}

// installHint says how to get a library or a command of the host.
func installHint(name string) string {
	if p := packageOf(name); p != "" {
		return "install it on this host (Debian and Ubuntu: apt install " + p + ")"
	}
	return "install the package of this host that has " + name
}
