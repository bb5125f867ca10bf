/* Rounding to formats that captures do not store. Pure. */
#ifndef ATS_PERTURB_ROUND_H
#define ATS_PERTURB_ROUND_H

/* Nearest OCP FP8 E4M3 number, ties to even; magnitudes past 448 become 448, NaN stays. */
float ats_round_e4m3(float x);

#endif
