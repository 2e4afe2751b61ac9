package pinfile

import (
	"fmt"
	"testing"
)

func TestCodeFixtures(t *testing.T) {
	const night = "10.2.0a20261001"
	for _, c := range []struct {
		format, file string
		set          map[string]string
		want         []string
	}{
		{"pkgbuild", "PKGBUILD", map[string]string{"pkgver": night, "sha256sums_x86_64[0]": codeNewHex, "_slug": "gfx1103"}, []string{
			"_slug=gfx1103", "pkgver=" + night, "pkgrel=1", "sha256sums_x86_64=('" + codeNewHex + "'"}},
		{"pkgbuild", "PKGBUILD", map[string]string{"pkgver": night, "pkgrel": "7"}, []string{"pkgver=" + night, "pkgrel=7"}},
		{"pkgbuild", "PKGBUILD", map[string]string{"pkgver": "10.2.0a20260930", "epoch": "2"}, []string{"epoch=2"}},
		{"pkgbuild", "PKGBUILD", map[string]string{"sha256sums_x86_64[1]": codeNewHex, "license[0]": "Apache"}, []string{
			"license=('Apache' custom:'AMD EULA')", `"` + codeNewHex + `")`}},
		{"srcinfo", "SRCINFO", map[string]string{"pkgver": night, "sha256sums_x86_64[0]": codeNewHex}, []string{
			"pkgver = " + night, "sha256sums_x86_64 = " + codeNewHex}},
		{"starlark", "redist.bzl", map[string]string{"ROCM_VERSION": night, "ROCM_REDIST.gfx1151.sha256": codeNewHex, "ROCM_REDIST.gfx1151.size": "42"}, []string{
			`ROCM_VERSION = "` + night + `"`, `sha256 = "` + codeNewHex + `",`, "size = 42,"}},
		{"starlark", "redist.bzl", map[string]string{"http_archive[name=rocm_gfx1151].sha256": codeNewHex, "rocm_redist.version": night, `"gfx110X-all".sha256`: codeNewHex}, []string{
			`sha256 = '` + codeNewHex + `',`, `version = "` + night + `",`, `sha256 = "` + codeNewHex + `",`}},
		{"dockerfile", "Dockerfile", map[string]string{"build.ROCM_VERSION": night, "ROCM_SHA256": codeNewHex, "ADD.checksum": "sha256:" + codeNewHex, "GFX": "gfx1103"}, []string{
			"ARG ROCM_VERSION=" + night, `ARG ROCM_SHA256="` + codeNewHex + `"`, "GFX='gfx1103' LANG=C.UTF-8",
			"ADD --checksum=sha256:" + codeNewHex + " --chown=0:0 https://nightly.repo.amd.com/rocm/core/tarball/license.txt /licenses/"}},
		{"dockerfile", "Dockerfile", map[string]string{".ROCM_VERSION": night, "ROCM_PATH": "/opt/rocm 2", `"org.opencontainers.image.version"`: night}, []string{
			"ARG ROCM_VERSION=" + night, `ENV ROCM_PATH "/opt/rocm 2"`, `LABEL org.opencontainers.image.version="` + night + `" \`}},
		{"cmake", "rocm.cmake", map[string]string{"ROCM_VERSION": night, "ROCM_HASH": codeNewHex, "rocm.URL_HASH": codeNewHex, "file.EXPECTED_HASH": codeNewHex, "ROCM_TARGETS[1]": "gfx1150"}, []string{
			`set(ROCM_VERSION "` + night + `" CACHE STRING "which night")`, "set(ROCM_HASH [[" + codeNewHex + "]])", "set(ROCM_TARGETS gfx1151 gfx1150)",
			"URL_HASH SHA256=" + codeNewHex + " # of the night", `EXPECTED_HASH "SHA256=` + codeNewHex + `")`}},
		{"spack", "package.py", map[string]string{"version[0]": night, "version[0].sha256": codeNewHex}, []string{`"` + night + `",`, `sha256="` + codeNewHex + `",`}},
		{"spack", "package.py", map[string]string{"version[sha256=" + codeOldHex + "]": night}, []string{`"` + night + `",`}},
		{"debian-watch", "watch", map[string]string{"url": "https://rocm.nightlies.amd.com/tarball-multi-arch/", "opts.pgpmode": "auto"}, []string{
			`opts="pgpmode=auto, uversionmangle=s/a/~a/,\`, `https://rocm.nightlies.amd.com/tarball-multi-arch/ \`}},
	} {
		t.Run(c.file+fmt.Sprint(len(c.set)), func(t *testing.T) {
			_, changed := editFixture(t, c.format, c.file, c.set)
			wantLines(t, changed, c.want...)
		})
	}
}

func TestCodeURLs(t *testing.T) {
	const base = "https://nightly.repo.amd.com/rocm/core/tarball"
	const night = base + "/therock-dist-linux-gfx1151-10.2.0a20260930.tar.gz"
	for _, c := range []struct {
		format, file string
		want         []string
	}{
		{"pkgbuild", "PKGBUILD", []string{base, "https://github.com/ROCm/TheRock", night,
			"https://mirror.repo.amd.com/rocm/core/tarball/LICENSE-10_2_0a20260930"}},
		{"srcinfo", "SRCINFO", []string{"https://github.com/ROCm/TheRock", night}},
		{"starlark", "redist.bzl", []string{base + "/", night, base + "/therock-dist-linux-gfx110X-all-10.2.0a20260930.tar.gz",
			base + "/therock-dist-linux-multiarch-10.2.0a20260930.tar.gz", night}},
		{"dockerfile", "Dockerfile", []string{base, night, "https://example.org/10.2.0a20260930/notes", base + "/license.txt"}},
		{"cmake", "rocm.cmake", []string{base, night, base + "/license.txt"}},
		{"spack", "package.py", []string{"https://github.com/ROCm/TheRock", night, base, night}},
		{"debian-watch", "watch", []string{base + "/"}},
	} {
		t.Run(c.file, func(t *testing.T) { wantLines(t, urlsOf(t, c.format, codeFixture(t, c.file)), c.want...) })
	}
}

func TestCodeNames(t *testing.T) {
	seen := map[string]bool{}
	for _, f := range codeFormats() {
		if seen[f.name] || f.parse == nil || len(f.names) == 0 {
			t.Fatalf("format %+v", f)
		}
		seen[f.name] = true
		for _, src := range []string{"", "\n", "\r\n"} {
			if doc, err := f.parse([]byte(src), Options{}); err == nil {
				if sites, _, err := doc.find("version"); err != nil || len(sites) != 0 {
					t.Fatalf("%s of nothing: %v %v", f.name, sites, err)
				}
			}
		}
	}
}
