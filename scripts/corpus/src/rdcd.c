/* rdcd: needs a library that is two directories below lib. */
#include <stdio.h>

extern const char *leaf_version(void);

int main(void) { return printf("rdcd, built with grpc of the %s night\n", leaf_version()) < 0; }
