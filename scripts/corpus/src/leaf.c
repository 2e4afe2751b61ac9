/* A library that needs nothing. */
#ifndef ROCM_VERSION
#define ROCM_VERSION "first"
#endif

const char *leaf_version(void) { return ROCM_VERSION; }
