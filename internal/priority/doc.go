// Package priority makes this process give way to others, on the processor and on
// the disk.
//
// It promises: all threads that there are, and all that will be, get the same; what
// already gives way more, as its unit says, is left as it is; nothing is ever taken
// back, which only root could.
package priority
