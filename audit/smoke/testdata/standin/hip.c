/* Stands in for libamdhip64: the functions that child.c uses, computed by the
 * processor. FAULT says how it is broken. */
#include <math.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define is(f) (strcmp(FAULT, f) == 0)

const char *hipGetErrorName(int code) { return code == 100 ? "hipErrorNoDevice" : "hipErrorUnknown"; }

int hipGetDeviceCount(int *n) {
	const char *visible = getenv("ROCR_VISIBLE_DEVICES"), *override = getenv("HSA_OVERRIDE_GFX_VERSION");
	if (is("none"))
		return 100;
	if (is("count"))
		return 2;
	if (is("silent"))
		return 0;
	if (is("second") && (!visible || strcmp(visible, "1")))
		return 100;
	if (is("override") && (!override || strcmp(override, "10.3.0")))
		return 100;
	*n = 1;
	return 0;
}

int hipSetDevice(int i) { return i == 0 ? 0 : 101; }
int hipMalloc(void **p, size_t n) { return is("memory") ? 2 : (*p = calloc(1, n), 0); }
int hipMemcpy(void *to, const void *from, size_t n, int kind) { return memcpy(to, from, n), kind > 0 ? 0 : 1; }

int hipDeviceSynchronize(void) {
	if (is("crash"))
		raise(SIGSEGV);
	if (is("hang"))
		for (;;)
			pause();
	return 0;
}

int hipModuleLoadData(void **m, const void *code) {
	if (memcmp(code, "\177ELF", 4) || is("image"))
		return 200;
	return *m = "module", 0;
}

int hipModuleGetFunction(void **f, void *m, const char *name) { return *f = (void *)name, m ? 0 : 500; }

int hipModuleLaunchKernel(void *f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz, unsigned shared, void *stream, void **args, void **more) {
	int n = **(int **)(args + 3), blocks = gx * gy * gz, threads = bx * by * bz;
	if (n > blocks * threads)
		return 1;
	if (strcmp(f, "smoke_add") == 0) {
		float *a = *(float **)args[0], *b = *(float **)args[1], *c = *(float **)args[2];
		for (int i = 0; i < n; i++)
			c[i] = a[i] + b[i];
		if (is("add"))
			c[n - 1] += 1;
		if (is("nan"))
			c[7] = NAN;
		return 0;
	}
	if (strcmp(f, "smoke_math") == 0) {
		float *x = *(float **)args[0], *y = *(float **)args[1];
		unsigned *sum = *(unsigned **)args[2];
		for (int i = 0; i < n; i++) {
			y[i] = __builtin_sqrtf(x[i]);
			*sum += (unsigned)(y[i] + 0.5f);
		}
		*sum += is("sum");
		if (is("math"))
			kill(getpid(), SIGABRT);
		return 0;
	}
	return 98;
}

__attribute__((destructor)) static void end(void) {
	if (is("exit"))
		raise(SIGSEGV);
}
