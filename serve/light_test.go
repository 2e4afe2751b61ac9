//go:build !heavy

package serve

// soakNights is how many nights are simulated.
const soakNights = 250
