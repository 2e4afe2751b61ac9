// Package feed writes feed.json, by which other bots know what was verified.
//
// Encode is the door. What it writes has the shape that Renovate's custom
// datasource reads, and holds what nvchecker, updatecli or a line of jq need
// too: version, time, digest in every form, address and size of each tarball of
// one family on one channel.
//
// It promises: only what has a whole SHA-256 is in a feed, each version once,
// the oldest first; the same entries give the same bytes, in whatever order they
// come; a feed is bounded, and has no address that carries a user's name, a
// password or a query.
package feed
