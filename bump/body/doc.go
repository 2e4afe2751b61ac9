// Package body writes what people read: the body of a pull request, the
// message of its commit, comments, and the dashboard.
//
// Render is the door. What it is told comes from AMD's tarball, from somebody's
// repository and from the forge, all of which may be hostile: none of it is a
// link, a mention, a table cell, a tag or a marker of ours unless this package
// made it so. What it writes is bounded, and the same for the same input, and
// it carries a fingerprint, so that a body that says the same is not sent again.
package body
