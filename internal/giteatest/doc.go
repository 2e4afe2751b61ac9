// Package giteatest gives tests a real Gitea, with users, repositories and
// people who do things to them.
//
//	func TestLife(t *testing.T) {
//	        site := giteatest.Start(t)
//	        bot := site.User(t, "bot")
//	        repo := site.Repo(t, "ann", "flake", map[string]string{"flake.nix": "…"})
//
// scripts/gitea.sh builds the program, once for each version; where it has not
// been run, such tests are skipped and say so. A server starts within about two
// seconds, so that each test function has its own and shares it among its
// subtests. It listens on the loopback device, by https with a certificate of
// its own, keeps everything in the test's directory, and ends with the test.
//
// It is spoken to here without any client library: what is tested with it must
// not be what prepares the test.
package giteatest
