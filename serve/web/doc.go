// Package web is the status page and the API of the daemon, over HTTP.
package web
