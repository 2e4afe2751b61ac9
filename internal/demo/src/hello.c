/* libhello.so.1: knows the version of its night. */
extern const char *rocm_sysdeps_greet(void);

const char *hello_greeting(void) { return rocm_sysdeps_greet(); }
const char *hello_version(void) { return ROCM_VERSION; }
