// Device code that needs no header of the machine: neither C++'s nor HIP's. The
// names that begin with __oc are those of the device libraries, which the
// compiler has to find by itself.
#define global extern "C" __attribute__((global))
#define shared __attribute__((shared))
#define library extern "C" __attribute__((device, const))

library float __ocml_sqrt_f32(float);
library float __ocml_sin_f32(float);
library unsigned long __ockl_get_local_id(unsigned);
library unsigned long __ockl_get_group_id(unsigned);

// What the device library of a target says that the target is, and what
// SMOKE_ISA says: where they are not the same, the call below stays, and linking
// fails over its name.
extern "C" const __attribute__((constant)) int __oclc_ISA_version;
extern "C" __attribute__((device)) void the_device_library_is_of_another_target(void);

enum { BLOCK = 256 };

global void smoke_add(const float *a, const float *b, float *c, int n) {
  int i = (int)__ockl_get_group_id(0) * BLOCK + (int)__ockl_get_local_id(0);
  if (i < n)
    c[i] = a[i] + b[i];
}

// smoke_math takes roots, and adds them up: those of a block in shared memory,
// those of all blocks by atomics.
global void smoke_math(const float *x, float *y, unsigned *sum, int n) {
  shared static unsigned part[BLOCK];
  int t = (int)__ockl_get_local_id(0);
  int i = (int)__ockl_get_group_id(0) * BLOCK + t;
  float root = i < n ? __ocml_sqrt_f32(x[i]) : 0.0f;
  if (i < n)
    y[i] = root;
  part[t] = (unsigned)(root + 0.5f);
  __builtin_amdgcn_fence(__ATOMIC_RELEASE, "workgroup");
  __builtin_amdgcn_s_barrier();
  __builtin_amdgcn_fence(__ATOMIC_ACQUIRE, "workgroup");
  for (int half = BLOCK / 2; half > 0; half /= 2) {
    if (t < half)
      part[t] += part[t + half];
    __builtin_amdgcn_fence(__ATOMIC_RELEASE, "workgroup");
    __builtin_amdgcn_s_barrier();
    __builtin_amdgcn_fence(__ATOMIC_ACQUIRE, "workgroup");
  }
  if (t == 0)
    __atomic_fetch_add(sum, part[0], __ATOMIC_RELAXED);
}

#ifdef SMOKE_ISA
global void smoke_isa(void) {
  if (__oclc_ISA_version != SMOKE_ISA)
    the_device_library_is_of_another_target();
}
#endif

// smoke_sin is compiled and never run: it takes what is large in ocml.
global void smoke_sin(float *x) { *x = __ocml_sin_f32(*x); }
