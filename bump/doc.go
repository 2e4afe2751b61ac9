// Package bump brings verified pins to the repository that packages ROCm.
//
// Run is the door. It fetches the base branch, changes the values that the
// target files hold, and pushes one commit to one fixed branch.
// WriteCheckout does the edit alone, in a local checkout, and EditNix the
// edit of one file's bytes.
//
// It promises:
//
//   - An edit changes the bytes of the named values and no other byte. Files
//     are read by a tokenizer of the format, so a comment or a string that
//     looks like a pin is never edited.
//   - A key names exactly one value or the edit is refused, with the line and
//     column of every candidate. A hash is only replaced by a hash of the
//     same kind. All edits of a bump are made, or none.
//   - The branch holds one commit on top of the current base. When it already
//     holds that tree on that base, nothing is pushed. When somebody else made
//     the commit at its tip, it is theirs: Run refuses. A push replaces
//     exactly the commit that was looked at, or fails.
//   - No file of the repository is ever checked out or run: trees are read
//     and written as git objects, so neither symlinks, filters nor hooks, of
//     the repository or of the host, have a say.
//   - A token is sent to the host of the URL only, by https only. It appears
//     in no argument, URL, error or event.
//   - git is never asked a question it could wait on, and dies with the
//     context, along with everything that it started.
//
// A pull request is not opened yet: for a forge other than plain git, Run
// pushes the branch and Result.URL is the page where the request is opened by
// hand.
package bump
