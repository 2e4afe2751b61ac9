/* A static program: no run path, no interpreter, nothing to edit. */
#include <stdio.h>

int main(void) { return puts("static") < 0; }
