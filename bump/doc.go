// Package bump brings verified pins to the repository that packages ROCm.
//
// Run is the door. It reads the base branch, changes the values that the target
// files hold, and keeps one commit on one branch and, on a forge, one request
// for it. Write does the edit alone, in a local checkout.
//
// It promises:
//
//   - An edit changes the bytes of the named values and no other byte, and all
//     edits of a bump are made, or none.
//   - What the edited files would fetch is what was verified, or there is no
//     push: *URLError says what to write.
//   - There is one branch with one commit on the base, and at most one open
//     request, whose number stays. Nothing is pushed when the branch has it, nor
//     when the base alone has moved on, and no text is sent that says the same.
//   - A branch whose last commit is somebody else's is theirs: it is said once,
//     and the branch is left alone until a person asks for it to be made anew.
//     A push replaces exactly the commit that was looked at, or fails.
//   - What a person closed is not offered again before the next version. What we
//     close we explain, and the branch that we delete is our own, unmodified.
//   - No state of ours is kept: a run sees what is on the forge, decides, and
//     takes steps after each of which another run comes to the same end.
//   - No file of the repository is ever run, nor checked out but for the check
//     commands of the config: trees are read and written as git objects, so
//     neither symlinks, filters nor hooks, of the repository or of the host,
//     have a say.
//   - A token is sent to the host of the URL only, by https, or to this machine.
//     It appears in no argument, URL, error, event or environment of a check.
//   - git and check commands are never asked a question they could wait on, and
//     die with the context, along with everything that they started.
package bump
