package hostpkg

// names are the packages of one library or command. "" means that the table
// does not know, "-" that the distribution has none.
type names struct {
	debian string // t64 behind a + is added from Debian 13 and Ubuntu 24.04 on
	fedora string
	suse   string
	arch   string
	gentoo string
	void   string
	nix    string // attribute of nixpkgs
}

// packages is what AMD's trees expect of a host.
var packages = map[string]names{
	"libatomic.so.1":     {"libatomic1", "libatomic", "libatomic1", "gcc-libs", "sys-devel/gcc", "libatomic", "gcc.cc.lib"},
	"libquadmath.so.0":   {"libquadmath0", "libquadmath", "libquadmath0", "gcc-libs", "sys-devel/gcc", "libquadmath", "gcc.cc.lib"},
	"libgfortran.so.5":   {"libgfortran5", "libgfortran", "libgfortran5", "gcc-libs", "sys-devel/gcc[fortran]", "libgfortran", "gfortran.cc.lib"},
	"libgomp.so.1":       {"libgomp1", "libgomp", "libgomp1", "gcc-libs", "sys-devel/gcc[openmp]", "libgomp", "gcc.cc.lib"},
	"libstdc++.so.6":     {"libstdc++6", "libstdc++", "libstdc++6", "gcc-libs", "sys-devel/gcc", "libstdc++", "gcc.cc.lib"},
	"libgcc_s.so.1":      {"libgcc-s1", "libgcc", "libgcc_s1", "gcc-libs", "sys-devel/gcc", "libgcc", "gcc.cc.lib"},
	"libnuma.so.1":       {"libnuma1", "numactl-libs", "libnuma1", "numactl", "sys-process/numactl", "libnuma", "numactl"},
	"libdrm.so.2":        {"libdrm2", "libdrm", "libdrm2", "libdrm", "x11-libs/libdrm", "libdrm", "libdrm"},
	"libdrm_amdgpu.so.1": {"libdrm-amdgpu1", "libdrm", "libdrm_amdgpu1", "libdrm", "x11-libs/libdrm[video_cards_amdgpu]", "libdrm", "libdrm"},
	"libelf.so.1":        {"libelf1+", "elfutils-libelf", "libelf1", "libelf", "virtual/libelf", "libelf", "elfutils"},
	"libdw.so.1":         {"libdw1+", "elfutils-libs", "libdw1", "libelf", "dev-libs/elfutils", "elfutils", "elfutils"},
	"libz.so.1":          {"zlib1g", "zlib", "libz1", "zlib", "sys-libs/zlib", "zlib", "zlib"},
	"libzstd.so.1":       {"libzstd1", "libzstd", "libzstd1", "zstd", "app-arch/zstd", "libzstd", "zstd"},
	"libbz2.so.1.0":      {"libbz2-1.0", "-", "", "bzip2", "app-arch/bzip2", "", "bzip2"},
	"liblzma.so.5":       {"liblzma5", "xz-libs", "liblzma5", "xz", "app-arch/xz-utils", "liblzma", "xz"},
	"libxml2.so.2":       {"libxml2", "libxml2", "libxml2-2", "libxml2-legacy", "dev-libs/libxml2", "libxml2", "libxml2"},
	"libcrypt.so.1":      {"libcrypt1", "libxcrypt-compat", "libcrypt1", "libxcrypt-compat", "sys-libs/libxcrypt[compat]", "libxcrypt-compat", "libxcrypt-legacy"},
	"libncurses.so.6":    {"libncurses6", "ncurses-libs", "libncurses6", "ncurses", "sys-libs/ncurses", "ncurses-libs", "ncurses"},
	"libncursesw.so.6":   {"libncursesw6", "ncurses-libs", "libncurses6", "ncurses", "sys-libs/ncurses", "ncurses-libs", "ncurses"},
	"libtinfo.so.6":      {"libtinfo6", "ncurses-libs", "libncurses6", "ncurses", "sys-libs/ncurses[tinfo]", "ncurses-libs", "ncurses"},
	"libtinfo.so.5":      {"libtinfo5", "ncurses-compat-libs", "libncurses5", "", "sys-libs/ncurses-compat", "ncurses5-libs", "ncurses5"},
	"libedit.so.2":       {"libedit2", "-", "", "-", "-", "-", "-"},
	"libexpat.so.1":      {"libexpat1", "expat", "libexpat1", "expat", "dev-libs/expat", "expat", "expat"},
	"libffi.so.8":        {"libffi8", "libffi", "libffi8", "libffi", "dev-libs/libffi", "libffi", "libffi"},
	"libsqlite3.so.0":    {"libsqlite3-0", "sqlite-libs", "libsqlite3-0", "sqlite", "dev-db/sqlite", "sqlite", "sqlite"},
	"libmpfr.so.6":       {"libmpfr6", "mpfr", "libmpfr6", "mpfr", "dev-libs/mpfr", "mpfr", "mpfr"},
	"libgmp.so.10":       {"libgmp10", "gmp", "libgmp10", "gmp", "dev-libs/gmp", "gmp", "gmp"},
	"libOpenCL.so.1":     {"ocl-icd-libopencl1", "ocl-icd", "libOpenCL1", "ocl-icd", "virtual/opencl", "ocl-icd", "ocl-icd"},
	"libibverbs.so.1":    {"libibverbs1", "libibverbs", "libibverbs1", "rdma-core", "sys-cluster/rdma-core", "rdma-core", "rdma-core"},
	"librdmacm.so.1":     {"librdmacm1+", "librdmacm", "librdmacm1", "rdma-core", "sys-cluster/rdma-core", "rdma-core", "rdma-core"},
	"libmlx5.so.1":       {"ibverbs-providers", "libibverbs", "libmlx5-1", "rdma-core", "sys-cluster/rdma-core", "rdma-core", "rdma-core"},
	"libhwloc.so.15":     {"libhwloc15", "hwloc-libs", "libhwloc15", "hwloc", "sys-apps/hwloc", "libhwloc", "hwloc"},
	"libGL.so.1":         {"libgl1", "libglvnd-glx", "libglvnd", "libglvnd", "media-libs/libglvnd", "libglvnd", "libGL"},
	"libEGL.so.1":        {"libegl1", "libglvnd-egl", "libglvnd", "libglvnd", "media-libs/libglvnd", "libglvnd", "libGL"},
	"libGLEW.so.2.2":     {"libglew2.2", "libGLEW", "libGLEW2_2", "glew", "media-libs/glew", "glew", "glew"},
	"libglut.so.3":       {"libglut3.12", "freeglut", "libglut3", "freeglut", "media-libs/freeglut", "libfreeglut", "freeglut"},
	"libX11.so.6":        {"libx11-6", "libX11", "libX11-6", "libx11", "x11-libs/libX11", "libX11", "xorg.libX11"},
	"libva.so.2":         {"libva2", "libva", "libva2", "libva", "media-libs/libva", "libva", "libva"},
	"libva-drm.so.2":     {"libva-drm2", "libva", "libva-drm2", "libva", "media-libs/libva", "libva", "libva"},
	"libpci.so.3":        {"libpci3", "pciutils-libs", "libpci3", "pciutils", "sys-apps/pciutils", "pciutils", "pciutils"},
	"libcap.so.2":        {"libcap2", "libcap", "libcap2", "libcap", "sys-libs/libcap", "libcap", "libcap"},
	"libudev.so.1":       {"libudev1", "systemd-libs", "libudev1", "systemd-libs", "virtual/libudev", "eudev-libudev", "systemd"},
	"libsystemd.so.0":    {"libsystemd0", "systemd-libs", "libsystemd0", "systemd-libs", "sys-apps/systemd", "", "systemd"},
	"libssl.so.3":        {"libssl3+", "openssl-libs", "libopenssl3", "openssl", "dev-libs/openssl", "libssl3", "openssl"},
	"libcrypto.so.3":     {"libssl3+", "openssl-libs", "libopenssl3", "openssl", "dev-libs/openssl", "libcrypto3", "openssl"},
	"libcurl.so.4":       {"libcurl4+", "libcurl", "libcurl4", "curl", "net-misc/curl", "libcurl", "curl"},
	"libyaml-cpp.so.0.7": {"libyaml-cpp0.7", "", "", "", "", "", ""},
	"libmpi.so.40":       {"libopenmpi3", "openmpi", "libopenmpi3", "openmpi", "sys-cluster/openmpi", "libopenmpi", "openmpi"},
	"libpapi.so.7.0":     {"libpapi7.0", "papi-libs", "", "", "dev-libs/papi", "", "papi"},
	"libunwind.so.8":     {"libunwind8", "libunwind", "libunwind8", "libunwind", "sys-libs/libunwind", "libunwind", "libunwind"},
	"libtbb.so.12":       {"libtbb12", "tbb", "libtbb12", "onetbb", "dev-cpp/tbb", "tbb", "onetbb"},

	"python3": {"python3", "python3", "python3", "python", "dev-lang/python", "python3", "python3"},
	"python":  {"python-is-python3", "python-unversioned-command", "python3", "python", "dev-lang/python", "python3", "python3"},
	"perl":    {"perl", "perl-interpreter", "perl", "perl", "dev-lang/perl", "perl", "perl"},
	"bash":    {"bash", "bash", "bash", "bash", "app-shells/bash", "bash", "bash"},
	"sh":      {"dash", "bash", "bash", "bash", "app-shells/bash", "dash", "bash"},
	"tclsh":   {"tcl", "tcl", "tcl", "tcl", "dev-lang/tcl", "tcl", "tcl"},
	"ruby":    {"ruby", "ruby", "ruby", "ruby", "dev-lang/ruby", "ruby", "ruby"},
	"node":    {"nodejs", "nodejs", "nodejs", "nodejs", "net-libs/nodejs", "nodejs", "nodejs"},
	"awk":     {"gawk", "gawk", "gawk", "gawk", "sys-apps/gawk", "gawk", "gawk"},
	"zsh":     {"zsh", "zsh", "zsh", "zsh", "app-shells/zsh", "zsh", "zsh"},
	"fish":    {"fish", "fish", "fish", "fish", "app-shells/fish", "fish-shell", "fish"},
}
