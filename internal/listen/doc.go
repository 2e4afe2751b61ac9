// Package listen knows where the status page may be served: which addresses there
// are, and which of them would show it to others without anybody having said so.
// The config and the page ask the same function, so that they give one answer.
package listen
