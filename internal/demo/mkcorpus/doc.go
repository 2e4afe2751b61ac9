// Mkcorpus edits single files for scripts/corpus.sh:
//
//	mkcorpus late [--ref KERNEL --kpack PATTERN] FILE
//	mkcorpus kpack --group NAME --gpu NAME --kernel NAME CODEOBJECT >FILE
package main
