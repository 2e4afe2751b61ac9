// What a user compiles first: host and device code in one file, with HIP's own
// headers and the machine's. Without a GPU it says so and ends with 0.
#include <hip/hip_runtime.h>
#include <cstdio>
#include <cmath>

__global__ void hello(float *x) { x[threadIdx.x] = sinf(x[threadIdx.x]) + 1.0f; }

int main() {
  int n = -1;
  hipError_t e = hipGetDeviceCount(&n);
  if (e == hipErrorNoDevice || (e == hipSuccess && n == 0)) {
    std::printf("smoke: none hipGetDeviceCount %d %s\n", (int)e, hipGetErrorString(e));
    return 0;
  }
  if (e != hipSuccess || n < 0) {
    std::printf("smoke: error hipGetDeviceCount %d %s\n", (int)e, hipGetErrorString(e));
    return 1;
  }
  float *x = nullptr;
  if ((e = hipMalloc(&x, 64 * sizeof(float))) != hipSuccess) {
    std::printf("smoke: error hipMalloc %d %s\n", (int)e, hipGetErrorString(e));
    return 1;
  }
  hello<<<1, 64>>>(x);
  e = hipDeviceSynchronize();
  std::printf("smoke: %s hello %d %s\n", e == hipSuccess ? "pass" : "error", (int)e, hipGetErrorString(e));
  return e == hipSuccess ? 0 : 1;
}
