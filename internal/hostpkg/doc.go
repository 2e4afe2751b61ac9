// Package hostpkg knows which package of a distribution has a library or a
// command that AMD's trees expect of a host, and how it is installed there; and
// it asks the package tools of this machine whose a path is: in bounded time,
// without a shell, and with an answer that is fit to be shown.
//
// It promises that no name is invented: what the table does not have for a
// distribution is asked for by its SONAME where the package tool can look that
// up (dnf, zypper), and is said to be unknown elsewhere. Names that Debian and
// Ubuntu changed for 64-bit times (libelf1t64) are given by release.
package hostpkg
