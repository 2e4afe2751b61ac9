__kernel void smoke(__global float *x, __local float *part, uint n) {
  size_t i = get_global_id(0), t = get_local_id(0);
  part[t] = i < n ? sin(x[i]) * native_exp(x[i]) : 0.0f;
  barrier(CLK_LOCAL_MEM_FENCE);
  if (i < n)
    x[i] = part[t] + part[0];
}
