/* What makes a sample the same sample in another result: its tokens, spans and probes, as short
 * texts that `compare` holds side by side.
 * Ownership: texts live in the arena. */
#ifndef ATS_ENGINE_SAMPLE_WORDS_H
#define ATS_ENGINE_SAMPLE_WORDS_H

#include "engine/select.h"

/* XXH3-128 of the token ids as little-endian int32, hex. */
ATS_MUST_CHECK ats_code ats_sample_tokens(ats_arena *arena, const ats_sample *sample,
                                          const char **out, ats_err *err);
/* "gold(gold) 911-915; near0(distractor) 40-44" in the order of the capture. */
ATS_MUST_CHECK ats_code ats_sample_spans(ats_arena *arena, const ats_sample *sample,
                                         const char **out, ats_err *err);
/* "1026@1026(answer); ..." of the chosen probes: own key index, position, role. */
ATS_MUST_CHECK ats_code ats_sample_probes(ats_arena *arena, const ats_chosen *chosen,
                                          const char **out, ats_err *err);

#endif
