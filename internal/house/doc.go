// Package house holds no code: its tests keep the house in order. Imports
// point down only, no room imports the config or the pipeline, and a module
// that docs/dependencies.md does not list with its reason cannot creep in.
package house
