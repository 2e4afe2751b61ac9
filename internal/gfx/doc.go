// Package gfx knows AMD's GPU targets: which tarball family serves a target,
// what people call it, and which GPUs this machine has.
//
// It promises that a family is never invented. The slugs that can be an
// answer are those that the caller learned from AMD's index; an X in one is
// one hexadecimal digit; the table of what each slug has held over time only
// narrows the answer. AMD has renamed and split slugs four times.
//
// It promises too that a substitute is never taken in silence: where nothing
// serves a target, the nearest one that is served is named in the error, with
// the setting that it needs, and only the user can choose it.
//
// What is known of families, products and targets comes from package amd.
package gfx
