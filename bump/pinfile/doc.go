// Package pinfile edits the values that a file of somebody's repository pins,
// and no other byte of it.
//
// Edit is the door. A file is read by a tokenizer of its format, so that a
// comment or a string that looks like a pin is never edited, and a key names
// exactly one value or the edit is refused, with the line and column of every
// candidate. A hash is only replaced by a hash of the same kind.
//
// URLs tells which addresses a file composes from its values, so that a pin
// that would download nothing, or something else, is found before it is
// published. Follow names the files that have to change along with an edited
// one, such as the .SRCINFO of a PKGBUILD.
package pinfile
