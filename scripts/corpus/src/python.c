/* rocgdb-py3.11: a program that is linked with one version of Python. */
#include <stdio.h>

extern const char *Py_GetVersion(void);

int main(void) { return printf("rocgdb with Python %s\n", Py_GetVersion()) < 0; }
