/* librocm_sysdeps_greet.so.1: stands for a third-party library in lib/rocm_sysdeps/lib. */
const char *rocm_sysdeps_greet(void) { return "hello"; }
