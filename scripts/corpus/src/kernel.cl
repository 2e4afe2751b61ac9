// Adds two vectors: enough of a kernel to have code for a GPU, without the
// device libraries.
__kernel void add(__global const float *a, __global const float *b, __global float *c)
{
	uint i = __builtin_amdgcn_workgroup_id_x() * 64 + __builtin_amdgcn_workitem_id_x();
	c[i] = a[i] + b[i];
}
