// Package trusted says whether a file may decide what this process does.
//
// It promises that nobody but root and the user of the process can change what is
// read through it: the owner is one of them, nobody else may write, neither by the
// mode nor by an access control list; and, as root, the same holds for every
// directory on the way from / to the file, and for every symlink on it and the
// directories of those. ReadFile opens first, looks at what it has opened, and reads
// that: the file cannot be another one by then.
//
// A directory such as /tmp, in which everybody may write and only the owner of an
// entry may remove it (the sticky bit), is passed when its owner and the entry's are
// trusted. A group may write where it is root's, or has the number of the user of
// the process, as a user's own group has.
package trusted
