/* rocm-hello: says which night it runs out of. 0 if all of it is there. */
#include <stdio.h>

extern const char *hello_greeting(void);
extern const char *hello_version(void);
extern long demo_blas_kernels(void);

int main(void)
{
	long size = demo_blas_kernels();
	printf("%s from ROCm %s", hello_greeting(), hello_version());
	if (size < 0) {
		printf(", whose kernels are missing\n");
		return 3;
	}
	printf(", kernels for " DEMO_GPU ": %ld bytes\n", size);
	return 0;
}
