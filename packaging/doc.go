// Command packaging makes what a release publishes of a binary that is already
// built: tarballs, deb, rpm and Arch packages, SBOMs and the licences of what is
// linked in. scripts/release.sh calls it; docs/release.md says what comes out.
//
//	packaging packages -version V -arch ARCH -scripts DIR -o DIR STAGE
//	packaging tarball  -o FILE DIR
//	packaging sbom     -version V -commit C -o FILE BINARY
//	packaging licenses -go GO -o FILE BINARY
//
// It promises that the same input gives the same bytes: owners are root, modes are
// 0644 or 0755, all times are SOURCE_DATE_EPOCH, names are sorted, and neither clock,
// host, umask nor path of the machine gets into anything.
//
// It is a module of its own, so that the packagers it links, nfpm and what that
// needs, are no dependencies of the program.
package main
