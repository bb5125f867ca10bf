#include "perturb/round.h"

#include <math.h>

float ats_round_e4m3(float x)
{
    /* 3 mantissa bits, least exponent -6, subnormal step 2^-9 (OCP 8-bit floating point, 2023). */
    const double a = fabs((double)x);
    if (isnan(x) || a == 0) return x;
    if (a >= 448) return copysignf(448, x);
    int exponent;
    frexp(a, &exponent); /* a = m 2^exponent, m in [1/2, 1) */
    const int step = exponent - 1 < -6 ? -9 : exponent - 4;
    const double rounded = ldexp(nearbyint(ldexp(a, -step)), step);
    return copysignf((float)rounded, x);
}
