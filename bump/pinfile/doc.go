// Package pinfile edits the values that a file of somebody's repository pins,
// and no other byte of it.
//
// Edit is the door. A file is read by a tokenizer of its format, so that a
// comment or a string that looks like a pin is never edited, and a key names
// exactly one value or the edit is refused, with the line and column of every
// candidate. A hash is only replaced by a hash of the same kind. The edited file
// is read again before it is handed out, and everything in it that was not to be
// edited must be what it was.
//
// A key is the end of a value's path:
//
//	version                        any value of that name
//	gfx1151.version                in what is called gfx1151
//	.version                       the value whose whole path this is
//	"a.b".version                  a name with dots, quoted
//	archives[0].sha256             in an item of a list, counted from 0
//	archives[arch=gfx1151].sha256  in the item whose field says so
//	/archives/0/sha256             a JSON pointer
//
// docs/pins.md says what each format takes and refuses.
//
// URLs tells which addresses a file composes from its values, so that a pin
// that would download nothing, or something else, is found before it is
// published. Follow names the files that have to change along with an edited
// one, such as the .SRCINFO of a PKGBUILD.
package pinfile
