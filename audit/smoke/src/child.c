/* Loads the HIP runtime of a tree by its path and uses it. It needs no header of
 * the machine: what it takes of libc, HIP and rocBLAS is declared here, with the
 * values that HIP's and rocBLAS's headers give their names.
 *
 *   child load HIP                count the devices, which initialises it
 *   child rtc HIPRTC OPTION         compile at run time, into kernel.co
 *   child kernel KFD HIP CODE     run the two kernels of the code object CODE
 *   child blas KFD HIP ROCBLAS    multiply matrices
 *
 * Each line that it prints begins with "smoke:" and a word: "step" names what
 * comes next, "pass" and "wrong" judge a result, "denied", "none" and "error"
 * say why it stopped, "end" that it came to its end. */
typedef unsigned long size_t;
typedef unsigned short half;

extern int dprintf(int, const char *, ...);
extern void exit(int) __attribute__((noreturn));
extern void *dlopen(const char *, int);
extern void *dlsym(void *, const char *);
extern char *dlerror(void);
extern void *malloc(size_t);
extern int open(const char *, int, ...);
extern long read(int, void *, size_t);
extern long write(int, const void *, size_t);
extern int close(int);
extern int strcmp(const char *, const char *);

enum { RTLD_NOW = 2, RTLD_GLOBAL = 0x100, O_RDWR = 2, O_NEW = 01 | 0100 | 01000, STDOUT = 1 };
enum { hipSuccess = 0, hipErrorNoDevice = 100 };
enum { hipMemcpyHostToDevice = 1, hipMemcpyDeviceToHost = 2 };
enum { rocblas_operation_none = 111 };

static void say(const char *word, const char *what, int code, const char *more) {
	dprintf(STDOUT, "smoke: %s %s %d %s\n", word, what, code, more ? more : "");
}

static void stop(const char *word, const char *what, int code, const char *more) {
	say(word, what, code, more);
	exit(1);
}

static void *library(const char *path) {
	say("step", "dlopen", 0, path);
	void *lib = dlopen(path, RTLD_NOW | RTLD_GLOBAL);
	if (!lib)
		stop("error", "dlopen", 0, dlerror());
	return lib;
}

static void *function(void *lib, const char *name) {
	void *f = dlsym(lib, name);
	if (!f)
		stop("error", "dlsym", 0, name);
	return f;
}

static const char *(*error_name)(int);

static void hip(const char *what, int code) {
	if (code == hipErrorNoDevice)
		stop("none", what, code, error_name(code));
	if (code != hipSuccess)
		stop("error", what, code, error_name(code));
}

/* devices initialises the runtime and returns how many devices it has. */
static int devices(void *lib) {
	int n = -1;
	error_name = function(lib, "hipGetErrorName");
	int (*count)(int *) = function(lib, "hipGetDeviceCount");
	say("step", "hipGetDeviceCount", 0, 0);
	hip("hipGetDeviceCount", count(&n));
	if (n < 0)
		stop("error", "hipGetDeviceCount", n, "devices");
	if (n == 0)
		stop("none", "hipGetDeviceCount", n, "no device");
	return n;
}

/* What is kept of HIP once it is open. */
static int (*hip_malloc)(void **, size_t);
static int (*hip_copy)(void *, const void *, size_t, int);
static int (*hip_sync)(void);

static void *start(const char *kfd, const char *path) {
	int fd = open(kfd, O_RDWR);
	if (fd < 0)
		stop("denied", kfd, 0, 0);
	close(fd);
	void *lib = library(path);
	devices(lib);
	int (*set)(int) = function(lib, "hipSetDevice");
	hip_malloc = function(lib, "hipMalloc");
	hip_copy = function(lib, "hipMemcpy");
	hip_sync = function(lib, "hipDeviceSynchronize");
	say("step", "hipSetDevice", 0, 0);
	hip("hipSetDevice", set(0));
	return lib;
}

static void *device(const void *from, size_t size) {
	void *p = 0;
	hip("hipMalloc", hip_malloc(&p, size));
	if (from)
		hip("hipMemcpy", hip_copy(p, from, size, hipMemcpyHostToDevice));
	return p;
}

static void fetch(void *to, const void *from, size_t size) {
	hip("hipDeviceSynchronize", hip_sync());
	hip("hipMemcpy", hip_copy(to, from, size, hipMemcpyDeviceToHost));
}

/* The kernels: see kernel.hip. */
enum { N = 4096, BLOCK = 256 };
static float a[N], b[N], c[N], m[N];

static void judge(const char *what, int wrong, int at) {
	if (wrong)
		say("wrong", what, wrong, "values");
	else
		say("pass", what, at, 0);
}

static void *slurp(const char *path) {
	enum { MAX = 16 << 20 };
	char *p = malloc(MAX);
	int fd = open(path, 0);
	long n, size = 0;
	if (!p || fd < 0)
		stop("error", "open", 0, path);
	while (size < MAX && (n = read(fd, p + size, MAX - size)) > 0)
		size += n;
	close(fd);
	return p;
}

typedef int launch_fn(void *, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void *, void **, void **);

static void kernels(const char *kfd, const char *path, const char *code) {
	void *lib = start(kfd, path), *module = 0, *f = 0;
	int (*load)(void **, const void *) = function(lib, "hipModuleLoadData");
	int (*get)(void **, void *, const char *) = function(lib, "hipModuleGetFunction");
	launch_fn *launch = function(lib, "hipModuleLaunchKernel");
	say("step", "hipModuleLoadData", 0, 0);
	hip("hipModuleLoadData", load(&module, slurp(code)));

	for (int i = 0; i < N; i++) {
		a[i] = (float)i;
		b[i] = (float)(2 * i + 1);
		m[i] = (float)(i % 100) * (float)(i % 100);
	}
	void *da = device(a, sizeof a), *db = device(b, sizeof b), *dc = device(c, sizeof c);
	int n = N, wrong = 0;
	void *add[] = {&da, &db, &dc, &n};
	say("step", "vector-add", 0, 0);
	hip("hipModuleGetFunction", get(&f, module, "smoke_add"));
	hip("hipModuleLaunchKernel", launch(f, N / BLOCK, 1, 1, BLOCK, 1, 1, 0, 0, add, 0));
	fetch(c, dc, sizeof c);
	for (int i = 0; i < N; i++)
		wrong += !(c[i] == a[i] + b[i]);
	judge("vector-add", wrong, N);

	/* sqrt of squares is exact to a last bit; the sum of the roots is an
	 * integer, added up in shared memory and then by atomics. */
	unsigned sum = 0, want = 0;
	void *dm = device(m, sizeof m), *ds = device(&sum, sizeof sum);
	void *math[] = {&dm, &dc, &ds, &n};
	say("step", "math", 0, 0);
	hip("hipModuleGetFunction", get(&f, module, "smoke_math"));
	hip("hipModuleLaunchKernel", launch(f, N / BLOCK, 1, 1, BLOCK, 1, 1, 0, 0, math, 0));
	fetch(c, dc, sizeof c);
	fetch(&sum, ds, sizeof sum);
	wrong = 0;
	for (int i = 0; i < N; i++) {
		float d = c[i] - (float)(i % 100);
		want += i % 100;
		wrong += !(d > -0.001f && d < 0.001f);
	}
	judge("math", wrong + (sum != want), N);
}

/* Matrices, by columns as BLAS has them, of small whole numbers: every sum is
 * exact in float and, below 2048, in half. */
enum { DIM = 48 };
static float fa[DIM * DIM], fb[DIM * DIM], fc[DIM * DIM];
static half ha[DIM * DIM], hb[DIM * DIM], hc[DIM * DIM];

static half to_half(int v) {
	int e = 0;
	if (v == 0)
		return 0;
	while (v >> (e + 1))
		e++;
	return (half)((e + 15) << 10 | ((v << (10 - e)) & 0x3ff));
}

static int product(int i, int j) {
	int sum = 0;
	for (int k = 0; k < DIM; k++)
		sum += ((i + k) % 4) * ((2 * k + j) % 3);
	return sum;
}

typedef int gemm_fn(void *, int, int, int, int, int, const void *, const void *, int, const void *, int, const void *, void *, int);

static void multiply(void *lib, void *handle, const char *name, const void *one, const void *zero, const void *x, const void *y, void *out, size_t size) {
	gemm_fn *gemm = function(lib, name);
	void *dx = device(x, size), *dy = device(y, size), *dz = device(0, size);
	say("step", name, 0, 0);
	int code = gemm(handle, rocblas_operation_none, rocblas_operation_none, DIM, DIM, DIM, one, dx, DIM, dy, DIM, zero, dz, DIM);
	if (code)
		stop("error", name, code, "rocblas_status");
	fetch(out, dz, size);
}

static void blas(const char *kfd, const char *path, const char *rocblas) {
	start(kfd, path);
	void *lib = library(rocblas), *handle = 0;
	int (*create)(void **) = function(lib, "rocblas_create_handle");
	int (*destroy)(void *) = function(lib, "rocblas_destroy_handle");
	say("step", "rocblas_create_handle", 0, 0);
	int code = create(&handle);
	if (code)
		stop("error", "rocblas_create_handle", code, "rocblas_status");

	for (int j = 0; j < DIM; j++)
		for (int i = 0; i < DIM; i++) {
			fa[i + j * DIM] = (float)((i + j) % 4);
			fb[i + j * DIM] = (float)((2 * i + j) % 3);
			ha[i + j * DIM] = to_half((i + j) % 4);
			hb[i + j * DIM] = to_half((2 * i + j) % 3);
		}
	float one = 1, zero = 0;
	half hone = to_half(1), hzero = 0;
	int wrong = 0;
	multiply(lib, handle, "rocblas_sgemm", &one, &zero, fa, fb, fc, sizeof fa);
	for (int j = 0; j < DIM; j++)
		for (int i = 0; i < DIM; i++)
			wrong += !(fc[i + j * DIM] == (float)product(i, j));
	judge("sgemm", wrong, DIM);

	wrong = 0;
	multiply(lib, handle, "rocblas_hgemm", &hone, &hzero, ha, hb, hc, sizeof ha);
	for (int j = 0; j < DIM; j++)
		for (int i = 0; i < DIM; i++)
			wrong += hc[i + j * DIM] != to_half(product(i, j));
	judge("hgemm", wrong, DIM);
	code = destroy(handle);
	if (code)
		stop("error", "rocblas_destroy_handle", code, "rocblas_status");
}

/* The source is compiled without a file of the machine: what it uses is built
 * into the runtime compiler, and the device libraries are found by comgr. */
static const char source[] = "extern \"C\" __global__ void smoke(float *x) { x[threadIdx.x] = sinf(x[blockIdx.x]); }\n";

static void rtc(const char *path, const char *option) {
	void *lib = library(path), *program = 0;
	const char *(*text)(int) = function(lib, "hiprtcGetErrorString");
	int (*create)(void **, const char *, const char *, int, const char **, const char **) = function(lib, "hiprtcCreateProgram");
	int (*compile)(void *, int, const char **) = function(lib, "hiprtcCompileProgram");
	int (*log_size)(void *, size_t *) = function(lib, "hiprtcGetProgramLogSize");
	int (*log)(void *, char *) = function(lib, "hiprtcGetProgramLog");
	int (*code_size)(void *, size_t *) = function(lib, "hiprtcGetCodeSize");
	int (*get)(void *, char *) = function(lib, "hiprtcGetCode");
	size_t size = 0;
	say("step", "hiprtcCreateProgram", 0, 0);
	int code = create(&program, source, "smoke.hip", 0, 0, 0);
	if (code)
		stop("error", "hiprtcCreateProgram", code, text(code));
	say("step", "hiprtcCompileProgram", 0, 0);
	code = compile(program, 1, &option);
	if (code) {
		if (log_size(program, &size) == 0 && size > 1 && size < 1 << 20) {
			char *p = malloc(size + 1);
			if (p && log(program, p) == 0) {
				p[size] = 0;
				dprintf(STDOUT, "%s\n", p);
			}
		}
		stop("error", "hiprtcCompileProgram", code, text(code));
	}
	code = code_size(program, &size);
	char *p = size < 64 << 20 ? malloc(size + 1) : 0;
	if (code || !p || (code = get(program, p)))
		stop("error", "hiprtcGetCode", code, text(code));
	int fd = open("kernel.co", O_NEW, 0644);
	if (fd < 0 || write(fd, p, size) != (long)size)
		stop("error", "write", 0, "kernel.co");
	close(fd);
	say("pass", "rtc", 0, 0);
}

static int run(int argc, char **argv) {
	if (argc == 3 && !strcmp(argv[1], "load"))
		say("pass", "devices", devices(library(argv[2])), 0);
	else if (argc == 4 && !strcmp(argv[1], "rtc"))
		rtc(argv[2], argv[3]);
	else if (argc == 5 && !strcmp(argv[1], "kernel"))
		kernels(argv[2], argv[3], argv[4]);
	else if (argc == 5 && !strcmp(argv[1], "blas"))
		blas(argv[2], argv[3], argv[4]);
	else
		stop("error", "usage", argc, 0);
	say("end", "of", 0, argv[1]);
	return 0;
}

/* The start of the program, which crt1.o would have: libc starts it as usual,
 * so that what registers itself to run at the exit is run. */
extern int __libc_start_main(int (*)(int, char **), int, char **, void (*)(void), void (*)(void), void (*)(void), void *);

__attribute__((used)) static void begin(long *sp, void (*fini)(void)) {
	__libc_start_main(run, (int)*sp, (char **)(sp + 1), 0, 0, fini, sp);
	for (;;)
		;
}

__asm__(".text\n"
	".globl _start\n"
	".type _start,@function\n"
	"_start:\n"
	"	xorl %ebp, %ebp\n"
	"	movq %rsp, %rdi\n"
	"	movq %rdx, %rsi\n"
	"	andq $-16, %rsp\n"
	"	call begin\n"
	"	hlt\n");
