/* comgr-version: loads the code object manager, and with it a compiler. */
#include <stddef.h>
#include <stdio.h>

extern void amd_comgr_get_version(size_t *major, size_t *minor);

int main(void)
{
	size_t major, minor;
	amd_comgr_get_version(&major, &minor);
	return printf("comgr %zu.%zu\n", major, minor) < 0;
}
