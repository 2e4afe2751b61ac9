/* Looks at itself as it was loaded, and returns 46 where all is well.
 * Everything else is the number of the check that failed. */
#define _GNU_SOURCE
#include <link.h>
#include <stdint.h>
#include <string.h>
#include <sys/auxv.h>

extern int dep(int); /* of version DEP_1, returns 40 more than it is given */

static int (*volatile entry)(int) = dep;     /* a relocation */
static char zeros[70000];                    /* more than a page of bss, of any page size */
static __thread int own = 5;                 /* .tdata */
static __thread char empty[100];             /* .tbss */
static const char *const names[] = {"one", "two"}; /* RELRO */
static int started;

__attribute__((constructor)) static void start(void) { started = 1; }

struct seen { int count, code; };

/* The object that holds this code, as the loader knows it. */
static int object(struct dl_phdr_info *info, size_t size, void *data)
{
	struct seen *seen = data;
	uintptr_t here = (uintptr_t)&zeros;
	int loads = 0, mine = 0, dynamic = 0, stack = 0;
	(void)size;
	for (int i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *p = &info->dlpi_phdr[i];
		uintptr_t from = info->dlpi_addr + p->p_vaddr;
		if (p->p_type == PT_LOAD && p->p_memsz > 0) {
			loads++;
			mine |= here >= from && here < from + p->p_memsz;
			*(volatile const char *)from;
			*(volatile const char *)(from + p->p_memsz - 1);
		}
		dynamic += p->p_type == PT_DYNAMIC;
		stack += p->p_type == PT_GNU_STACK;
	}
	if (!mine)
		return 0;
	seen->count++;
	if (loads < 1 || dynamic != 1)
		seen->code = 3;
#ifdef MAIN
	if ((uintptr_t)info->dlpi_phdr != getauxval(AT_PHDR) || info->dlpi_phnum != getauxval(AT_PHNUM))
		seen->code = 4;
#endif
	return 0;
}

int user_rpath(void)
{
	struct seen seen = {0, 0};
	for (unsigned i = 0; i < sizeof zeros; i++)
		if (zeros[i])
			return 5;
	for (unsigned i = 0; i < sizeof empty; i++)
		if (empty[i])
			return 6;
	if (own != 5 || !started || strcmp(names[1], "two"))
		return 7;
	dl_iterate_phdr(object, &seen);
	if (seen.count != 1)
		return 8;
	if (seen.code)
		return seen.code;
	zeros[69999] = 1; /* it can be written to */
	own++;
	return entry(6);
}

#ifdef MAIN
int main(void) { return user_rpath(); }
#endif
