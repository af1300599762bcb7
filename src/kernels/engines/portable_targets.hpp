// Highway's targets that the portable kernels are compiled for. Included before Highway.
#pragma once

// Left out is what adds nothing: SSSE3 is below the baseline of x86-64-v2, AVX3_DL has no f32 arithmetic of its own,
// and the vectors of SVE have no size at compile time, so they can't stand in arrays.
#define HWY_DISABLED_TARGETS (HWY_SSSE3 | HWY_AVX3_DL | HWY_SVE | HWY_SVE2 | HWY_SVE_256 | HWY_SVE2_128)
#define HWY_DISABLE_PCLMUL_AES

#include <hwy/targets.h>
