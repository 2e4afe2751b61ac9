/* Stands in for librocblas: matrix products, computed by the processor. */
#include <stdlib.h>
#include <string.h>

#define is(f) (strcmp(FAULT, f) == 0)
typedef unsigned short half;

static float from_half(half h) {
	int e = (h >> 10 & 31) - 15, m = h & 0x3ff;
	float v = h & 0x7fff ? 1 + m / 1024.0f : 0;
	for (; e > 0; e--)
		v *= 2;
	for (; e < 0 && v; e++)
		v /= 2;
	return v;
}

static half to_half(float f) {
	unsigned u;
	memcpy(&u, &f, 4);
	return f == 0 ? 0 : ((int)(u >> 23 & 255) - 127 + 15) << 10 | (u >> 13 & 0x3ff);
}

int rocblas_create_handle(void **h) { return is("handle") ? 6 : (*h = malloc(1), 0); }
int rocblas_destroy_handle(void *h) { return free(h), 0; }

int rocblas_sgemm(void *h, int ta, int tb, int m, int n, int k, const float *alpha, const float *a, int lda, const float *b, int ldb, const float *beta, float *c, int ldc) {
	if (ta != 111 || tb != 111)
		return 3;
	for (int j = 0; j < n; j++)
		for (int i = 0; i < m; i++) {
			float sum = 0;
			for (int l = 0; l < k; l++)
				sum += a[i + l * lda] * b[l + j * ldb];
			c[i + j * ldc] = *alpha * sum + (*beta ? *beta * c[i + j * ldc] : 0);
		}
	if (is("sgemm"))
		c[ldc] += 1;
	return 0;
}

int rocblas_hgemm(void *h, int ta, int tb, int m, int n, int k, const half *alpha, const half *a, int lda, const half *b, int ldb, const half *beta, half *c, int ldc) {
	if (ta != 111 || tb != 111)
		return 3;
	for (int j = 0; j < n; j++)
		for (int i = 0; i < m; i++) {
			float sum = 0;
			for (int l = 0; l < k; l++)
				sum += from_half(a[i + l * lda]) * from_half(b[l + j * ldb]);
			c[i + j * ldc] = is("hgemm") ? 0 : to_half(from_half(*alpha) * sum);
		}
	return 0;
}
