/* libdemo_blas.so.1: keeps its kernels in an archive beside the tree's lib, as
 * AMD's libraries do: it finds itself in /proc/self/maps and goes on from there. */
#define _GNU_SOURCE
#include <stdint.h>
#include <stdio.h>
#include <string.h>

extern const char *rocm_sysdeps_greet(void);

/* Writes the directory of this library into dir; returns 0 if it did. */
static int own_directory(char *dir, size_t size)
{
	char line[4608];
	FILE *maps = fopen("/proc/self/maps", "r");
	if (!maps)
		return -1;
	while (fgets(line, sizeof line, maps)) {
		unsigned long from, to;
		char *path = strchr(line, '/');
		if (!path || sscanf(line, "%lx-%lx", &from, &to) != 2)
			continue;
		if ((uintptr_t)own_directory < from || (uintptr_t)own_directory >= to)
			continue;
		fclose(maps);
		*strrchr(path, '/') = 0;
		return snprintf(dir, size, "%s", path) < (int)size ? 0 : -1;
	}
	fclose(maps);
	return -1;
}

/* Returns the size of the archive in bytes, or -1 if it is missing or is none. */
long demo_blas_kernels(void)
{
	char dir[4096], path[4608], magic[4];
	long size = -1;
	if (rocm_sysdeps_greet()[0] != 'h' || own_directory(dir, sizeof dir))
		return -1;
	snprintf(path, sizeof path, "%s/../.kpack/demo_lib_%s.kpack", dir, DEMO_GPU);
	FILE *f = fopen(path, "rb");
	if (!f)
		return -1;
	if (fread(magic, 1, 4, f) == 4 && !memcmp(magic, "KPAK", 4) && !fseek(f, 0, SEEK_END))
		size = ftell(f);
	fclose(f);
	return size;
}
