// Mkcorpus edits single files for scripts/corpus.sh, and makes small nights for
// scripts/test-install.sh:
//
//	mkcorpus late [--ref KERNEL --kpack PATTERN] FILE
//	mkcorpus kpack --group NAME --gpu NAME --kernel NAME CODEOBJECT >FILE
//	mkcorpus night DIR VERSION...
package main
