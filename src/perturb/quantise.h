/* Integer rounding of a block of rows, as caches do it. Pure; private to perturb/. */
#ifndef ATS_PERTURB_QUANTISE_H
#define ATS_PERTURB_QUANTISE_H

#include <stdbool.h>
#include <stdint.h>

/* Asymmetric round to nearest with 2^bits levels (KIVI, Liu et al. 2024, section 3.1):
 * s = (max - min) / (2^bits - 1), x' = s nearest((x - min) / s) + min, over a group's elements.
 * x: [rows, d] in place. Per token a group is `group` elements of one row; per channel it is one
 * element of `group` rows; group 0: the whole row or column. Elements that are not finite are left
 * alone, a group of one value stays as it is. */
void ats_quantise(int bits, bool per_channel, int64_t group, int64_t rows, int64_t d, float *x);

#endif
