# SPDX-License-Identifier: MIT
from spack.package import *


class RocmNightly(Package):
    """All of ROCm as AMD builds it every night.

    version("0.0", sha256="not this one")
    """

    homepage = "https://github.com/ROCm/TheRock"
    url = "https://nightly.repo.amd.com/rocm/core/tarball/therock-dist-linux-gfx1151-10.2.0a20260930.tar.gz"

    maintainers("ada")
    license("MIT")

    version(
        "10.2.0a20260930",
        sha256="0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef",
        expand=False,
    )
    version("10.2.0a20260929", sha256="5555555555555555555555555555555555555555555555555555555555555555")
    # version("10.2.0a20260928", sha256="6666")

    depends_on("python@3.10:", type="run")

    def url_for_version(self, version):
        base = "https://nightly.repo.amd.com/rocm/core/tarball"
        return "{0}/therock-dist-linux-{gfx}-{1}.tar.gz".format(base, version, gfx="gfx1151")

    def install(self, spec, prefix):
        version = f"{spec.version}"
        install_tree(".", prefix)
