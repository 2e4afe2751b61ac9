// Package smallfs gives tests file systems that are full: small ones, in a mount
// namespace of their own, of which nothing stays when the test has ended.
//
//	func TestFull(t *testing.T) {
//	        if !smallfs.Inside(t) {
//	                return // it runs in a process of its own
//	        }
//	        fs := smallfs.Tmpfs(t, 1<<20, 100)
//
// It promises that no mount is seen by any other process, and that a machine on
// which mounting is not permitted skips such tests, and says so.
package smallfs
