// Package browsertest lets a test drive a real Chromium by a script of its own. It
// is for tests alone.
package browsertest
