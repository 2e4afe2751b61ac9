// Package aur writes what the Arch User Repository wants of a package: a
// PKGBUILD, its .install file and .SRCINFO, for one family of AMD's nightlies.
//
// Make is the door: a verified pin and the list of the files that the repack of
// its tarball came to give a Package, and Package.Write puts it into a
// directory.
//
// It promises:
//
//   - Nothing is guessed of a tree that was not looked at: what the package
//     depends on, and what it provides, follows from what its ELF files say.
//   - The same input gives the same bytes. A newer night changes the values that
//     have changed and no other line.
//   - .SRCINFO is what makepkg --printsrcinfo prints, byte for byte.
//   - Text from outside is checked against what its field may hold, and refused
//     otherwise; none of it is a word of the shell.
//   - Files of others are not written over, and symbolic links are not followed.
package aur
