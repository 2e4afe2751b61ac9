"""Where ROCm comes from; sha256 = "not this one"."""

load("@bazel_tools//tools/build_defs/repo:http.bzl", "http_archive")

_BASE = "https://nightly.repo.amd.com/rocm/core/tarball/"
ROCM_VERSION = "10.2.0a20260930"
# ROCM_VERSION = "1.0"

ROCM_REDIST = {
    "gfx1151": struct(
        url = _BASE + "therock-dist-linux-gfx1151-" + ROCM_VERSION + ".tar.gz",
        sha256 = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef",
        packages = ["hip", "rocblas"],
        size = 4100200300,
    ),
    "gfx110X-all": struct(
        url = "%stherock-dist-linux-%s-%s.tar.gz" % (_BASE, "gfx110X-all", ROCM_VERSION),
        sha256 = '1111111111111111111111111111111111111111111111111111111111111111',
        size = 5100200300,
    ),
}

rocm_redist = struct(
    version = "10.2.0a20260930",
    url = "https://nightly.repo.amd.com/rocm/core/tarball/therock-dist-linux-multiarch-{version}.tar.gz",
    sha256 = "2222222222222222222222222222222222222222222222222222222222222222",
)

def rocm_deps():
    """Declares it all: http_archive(name = "rocm_gfx1151", sha256 = "no")."""
    http_archive(
        name = "rocm_gfx1151",
        urls = ["https://nightly.repo.amd.com/rocm/core/tarball/therock-dist-linux-gfx1151-{}.tar.gz".format(ROCM_VERSION)],
        sha256 = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef",
    )
    http_archive(
        name = "rocm_headers",
        sha256 = "3333333333333333333333333333333333333333333333333333333333333333",
    )
