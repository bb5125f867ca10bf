#include "perturb/families.h"

#include <string.h>

static const ats_family *const families[] = {
    &ats_family_distractors, &ats_family_duplicates,   &ats_family_superseded,
    &ats_family_high_norm,   &ats_family_mask_window,  &ats_family_payload_swap,
    &ats_family_key_replace, &ats_family_query_rotate, &ats_family_temperature,
    &ats_family_normalise,   &ats_family_noise,        &ats_family_kv_evict,
    &ats_family_combine,
};

static const char *const mode_names[] = {[ATS_MODE_NONE] = "none",
                                         [ATS_MODE_OVERLAY] = "overlay",
                                         [ATS_MODE_REPLACE] = "replace",
                                         [ATS_MODE_SHIFT] = "shift",
                                         [ATS_MODE_MOVE] = "move"};

const ats_family *const *ats_families(int64_t *count)
{
    *count = (int64_t)(sizeof families / sizeof *families);
    return families;
}

const ats_family *ats_family_find(const char *kind)
{
    for (size_t i = 0; i < sizeof families / sizeof *families; i++)
        if (strcmp(families[i]->kind, kind) == 0) return families[i];
    return NULL;
}

int64_t ats_family_param(const ats_family *family, const char *name)
{
    for (int64_t i = 0; i < family->n_params; i++)
        if (strcmp(family->params[i].name, name) == 0) return i;
    return -1;
}

const char *ats_mode_name(ats_position_mode mode) { return mode_names[mode]; }

bool ats_mode_parse(const char *name, ats_position_mode *out)
{
    for (ats_position_mode mode = ATS_MODE_OVERLAY; mode <= ATS_MODE_MOVE; mode++)
        if (strcmp(mode_names[mode], name) == 0) {
            *out = mode;
            return true;
        }
    return false;
}
