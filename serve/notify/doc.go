// Package notify tells people and programs what has happened.
package notify
