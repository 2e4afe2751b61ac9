// Whether this machine has what the host part of a HIP program needs: the
// headers and libraries of C and C++, and a linker.
#include <cmath>
#include <cstdio>
#include <cstdlib>

int main(int argc, char **) { return std::printf("%g\n", std::sqrt((double)argc)) < 0 ? EXIT_FAILURE : EXIT_SUCCESS; }
