// Package snapshot makes a State of what is on disk, without the network.
package snapshot
