// Package web is the status page and the API of the daemon, over HTTP.
//
// It promises: what is shown was made once for each State, however many ask, so
// that the page does not slow down what it tells of; everything in a State is
// taken for hostile and shown as text; nobody but this machine reaches it without
// somebody having said so; without a token nothing can be changed, and with one
// only by who has it, on purpose; no client can hold more than its share of
// connections, memory and time.
//
// The page works without JavaScript and asks nobody else for anything.
package web
