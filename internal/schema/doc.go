// Package schema reads records that programs of different ages wrote: JSON
// objects with a field "schema" that says in which form they are.
//
// A Format is a table: step n takes a record of schema n to schema n+1. Read
// takes a record of any older schema to that of this program, refuses one of a
// newer with ErrNewer and words that say what to do, and gives one of today's
// back as it came, byte for byte. It writes nothing: a record gets its new form
// on disk when it is next written, so that going back to the older program works
// until then.
//
// Fields that are added need no new schema: readers pass over what they do not
// know. A new schema is for what an older program would misread.
package schema
