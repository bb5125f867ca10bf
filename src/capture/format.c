#include "capture/format.h"

#include <string.h>

static const char *const layouts[] = {
    [ATS_ROPE_NONE] = "none", [ATS_ROPE_HALF] = "half", [ATS_ROPE_INTERLEAVED] = "interleaved"};
static const char *const positions_words[] = {[ATS_POSITIONS_ROPE] = "rope",
                                              [ATS_POSITIONS_ALIBI] = "alibi",
                                              [ATS_POSITIONS_NONE] = "none",
                                              [ATS_POSITIONS_ABSOLUTE] = "absolute"};

const char *ats_rope_layout_word(ats_rope_layout layout) { return layouts[layout]; }
const char *ats_positions_word(ats_positions positions) { return positions_words[positions]; }

bool ats_rope_layout_parse(const char *word, ats_rope_layout *out)
{
    for (int i = 0; i < (int)(sizeof layouts / sizeof *layouts); i++)
        if (strcmp(word, layouts[i]) == 0) {
            *out = (ats_rope_layout)i;
            return true;
        }
    return false;
}

bool ats_positions_parse(const char *word, ats_positions *out)
{
    for (int i = 0; i < (int)(sizeof positions_words / sizeof *positions_words); i++)
        if (strcmp(word, positions_words[i]) == 0) {
            *out = (ats_positions)i;
            return true;
        }
    return false;
}
