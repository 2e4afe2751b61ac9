package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/goreleaser/nfpm/v2"
)

// setScripts sets the scripts that a package runs.
func (s *stager) setScripts(of map[string]*string) error {
	for file, to := range of {
		text, err := s.script(file)
		if err != nil {
			return err
		}
		*to = text
	}
	return nil
}

// debian adds what Debian's policy asks of a package: §12.5 copyright, §12.7 changelog.
func debian(s *stager, info *nfpm.Info) error {
	license, err := os.ReadFile(filepath.Join(s.dir, docDir, "LICENSE"))
	if err != nil {
		return err
	}
	s.drop(docDir + "/LICENSE")
	head := "Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/\nUpstream-Name: " + name + "\nSource: " + homepage +
		"\n\nFiles: *\nCopyright: 2026 The rocm-nightly authors\nLicense: Expat\nComment:\n The licences of the Go modules that are linked in are in\n " + docDir + "/THIRD-PARTY.\n\nLicense: Expat\n"
	changelog := fmt.Sprintf("%s (%s) unstable; urgency=medium\n\n  * What a user notices is in CHANGELOG.md.\n\n -- %s  %s\n",
		name, s.version, maintainer, s.when.Format(time.RFC1123Z))
	for to, text := range map[string][]byte{
		docDir + "/copyright":                  []byte(head + indented(license)),
		docDir + "/changelog.gz":               compressed([]byte(changelog)),
		"/usr/share/lintian/overrides/" + name: []byte(overrides),
	} {
		if err := s.file(to, text, 0o644); err != nil {
			return err
		}
	}
	info.Recommends = []string{"ca-certificates"}
	info.Suggests = []string{"git", "minisign", "systemd"}
	return s.setScripts(map[string]*string{"deb/postinst": &info.Scripts.PostInstall, "deb/prerm": &info.Scripts.PreRemove, "deb/postrm": &info.Scripts.PostRemove})
}

// overrides are what lintian says of the package and why it is so.
const overrides = `# Go links statically: the program runs in any root, also without a libc.
rocm-nightly: statically-linked-binary *
# Units are neither enabled nor started, which is what the debhelper tools are for.
rocm-nightly: maintainer-script-calls-systemctl *
# Links to ld.so.conf.d files, which the program makes, go with a purge.
rocm-nightly: maintscript-calls-ldconfig *
# doctor reads which package owns a file, where dpkg-query is not there to ask.
rocm-nightly: uses-dpkg-database-directly *
`

// indented is a licence in the form of DEP-5.
func indented(text []byte) string {
	out := ""
	for _, line := range splitLines(text) {
		if line == "" {
			line = "."
		}
		out += " " + line + "\n"
	}
	return out
}

func redHat(s *stager, info *nfpm.Info) error {
	info.RPM.Group = "System Environment/Base"
	info.RPM.BuildHost = "localhost" // that of the machine would be in it
	info.RPM.Compression = "zstd"
	info.Recommends = []string{"ca-certificates"}
	info.Suggests = []string{"git", "systemd"}
	return s.setScripts(map[string]*string{"rpm/post": &info.Scripts.PostInstall, "rpm/preun": &info.Scripts.PreRemove, "rpm/postun": &info.Scripts.PostRemove})
}

func archLinux(s *stager, info *nfpm.Info) error {
	info.Release = "1"
	info.Description, _, _ = strings.Cut(description, "\n")
	info.ArchLinux.Packager = maintainer
	return s.setScripts(map[string]*string{"arch/post_install": &info.Scripts.PostInstall, "arch/post_upgrade": &info.ArchLinux.Scripts.PostUpgrade, "arch/pre_remove": &info.Scripts.PreRemove})
}
