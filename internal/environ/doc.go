// Package environ is the opt-in environment of a prefix: what it sets, in the
// words of each shell, and the way back.
//
// # Promises
//
// The user's own value wins. A variable that is set, to the empty string even,
// stays as it is; a search path gets our directory as one more entry.
//
// Entering twice changes nothing. Entering another prefix leaves the first.
//
// Leaving restores. A variable that was not set is not set again, an empty one
// is empty; of a search path our entries go, and what the user added meanwhile
// stays, as does a value that the user changed.
//
// What is to be undone is written down in the environment itself
// ([UndoName]), in one form for all shells: a shell that was started from
// another one can leave what that one entered, and nothing on disk is needed
// for it.
//
// No helper variable or function but rocm_nightly_leave is left behind, and the
// scripts work under set -eu, noglob and any IFS. Names and values are quoted
// for each syntax they are written in.
package environ
