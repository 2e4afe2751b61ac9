// Package config reads config.yaml.
//
// It promises that what is written is what happens: unknown keys and values of
// the wrong kind are errors with file, line and column; values that make no
// sense and settings that this version cannot honour are errors with their key.
// Nothing is ignored. Config.yaml at the root of the
// repository decodes to exactly the built-in defaults. Secrets never stand in
// the file: it names the environment variables that hold them.
package config
