#include "perturb/families.h"
#include "perturb/params.h"

static const char *const words_rotation[] = {"angle", "random", NULL};

static const ats_param_def params[] = {
    {.name = "rotation",
     .type = ATS_PARAM_WORD,
     .unit = "1",
     .doc = "One angle for every pair, or independent random angles.",
     .text = "angle",
     .words = words_rotation},
    {.name = "seed",
     .type = ATS_PARAM_INT,
     .unit = "1",
     .doc = "random: number of the draw.",
     .number = 0,
     .min = 0,
     .max = ATS_ROWS_MAX},
    {.name = "angle",
     .type = ATS_PARAM_REAL,
     .unit = "degrees",
     .doc = "Angle of every rotary pair.",
     .number = NAN,
     .min = -360,
     .max = 360,
     .group = "rotation",
     .group_word = "angle"},
};

const ats_family ats_family_query_rotate = {
    .kind = "query_rotate",
    .summary = "Queries rotated inside the rotary pairs.",
    .params = params,
    .n_params = ATS_COUNT(params),
    .dose = "angle",
    .has_control = false,
    .has_positions = false,
};
