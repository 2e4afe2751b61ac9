// Package cage runs a program that nobody has vouched for: a compiler, a
// rocminfo, a test kernel out of a tree that was downloaded a minute ago.
//
// What runs in a cage is an unprivileged user's process with no capabilities,
// no way to gain any, no network and no sockets, an environment that holds
// what the Command says and nothing else, no descriptor but its three streams,
// and a view of the machine that is the system's programs and libraries and
// the directories that the Command names, all read-only. What it can write is
// its scratch directory and a private /tmp. Time, memory, processes, the size
// of files and of scratch, and what is kept of its output are bounded, and when
// it ends, for whatever reason, everything that it started ends with it.
//
// There are two kinds. Namespaces are the better one: a root of its own, its
// own processes, network and IPC, made as root or, where the system lets a user
// do it, in a user namespace. Landlock (Linux 6.2 and later) does for the rest:
// the real file system with a filter over it. A seccomp filter is the second
// wall of the first kind and half of the first wall of the other. Where neither
// can be made nothing is run at all: Run returns a NotRunError that says why.
//
// The inside is set up by this program itself, which starts itself again with
// an argv of its own. Main must therefore be the first thing that main does, and
// the first thing that TestMain does in a package whose tests use a cage:
//
//	func TestMain(m *testing.M) {
//		if code, inside := cage.Main(); inside {
//			os.Exit(code)
//		}
//		os.Exit(m.Run())
//	}
//
// docs/cage.md says what is kept out, by what, on which kernels, and what is
// not.
package cage
