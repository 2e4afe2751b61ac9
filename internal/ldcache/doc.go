// Package ldcache reads /etc/ld.so.cache, in which ldconfig keeps where each
// library of the machine is, and which the loader asks before it looks into its
// built-in directories.
//
// It promises that no file makes it panic or take memory beyond a small
// multiple of the file's size, and that what it lists is what `ldconfig -p`
// lists, in the same order. Only caches in the format of glibc 2.2 and later are
// read, alone or behind one of the format before it, in this machine's byte
// order; anything else is an error.
package ldcache
