# set(ROCM_VERSION "1.0")
#[[ set(ROCM_VERSION "2.0")
]]
include(FetchContent)
set(ROCM_VERSION "10.2.0a20260930" CACHE STRING "which night")
set(ROCM_BASE https://nightly.repo.amd.com/rocm/core/tarball)
set(ROCM_HASH [[0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef]])
set(ROCM_TARGETS gfx1151 gfx1103)
FetchContent_Declare(rocm
  URL "${ROCM_BASE}/therock-dist-linux-gfx1151-${ROCM_VERSION}.tar.gz"
  URL_HASH SHA256=0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef # of the night
  DOWNLOAD_EXTRACT_TIMESTAMP TRUE)
file(DOWNLOAD "${ROCM_BASE}/license.txt" "${CMAKE_BINARY_DIR}/license.txt"
     EXPECTED_HASH "SHA256=4444444444444444444444444444444444444444444444444444444444444444")
FetchContent_MakeAvailable(rocm)
