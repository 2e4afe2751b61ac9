package pinfile

// Piece is a part of a composed address.
type Piece struct {
	Text string // expanded
	// Start and End are the bytes of the file that say Text literally, byte by
	// byte; both are 0 where it comes from somewhere else.
	Start, End int
}

// URL is an address that a file composes.
type URL struct {
	Text string // what is fetched, as far as the file tells
	Place
	Pieces  []Piece  // whose Texts make Text
	Unknown []string // names that stand in it and that the file does not tell; then ${name} is in Text
}
