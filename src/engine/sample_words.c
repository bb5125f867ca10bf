#include "engine/sample_words.h"

#include <xxhash.h>

#include "base/text.h"

ats_code ats_sample_tokens(ats_arena *arena, const ats_sample *sample, const char **out,
                           ats_err *err)
{
    const XXH128_hash_t hash =
        XXH3_128bits(sample->tokens, (size_t)sample->n_keys * sizeof *sample->tokens);
    return ats_arena_printf(arena, out, err, "%016llx%016llx", (unsigned long long)hash.high64,
                            (unsigned long long)hash.low64);
}

ats_code ats_sample_spans(ats_arena *arena, const ats_sample *sample, const char **out,
                          ats_err *err)
{
    ats_text text = {.arena = arena, .err = err};
    for (int64_t i = 0; i < sample->n_spans; i++) {
        const ats_span *span = &sample->spans[i];
        ats_text_add(&text, "%s%s(%s) %lld-%lld", i > 0 ? "; " : "", span->name, span->role,
                     (long long)span->start, (long long)span->stop);
    }
    return ats_text_done(&text, out);
}

ats_code ats_sample_probes(ats_arena *arena, const ats_chosen *chosen, const char **out,
                           ats_err *err)
{
    ats_text text = {.arena = arena, .err = err};
    for (int64_t i = 0; i < chosen->n_probes; i++) {
        const ats_probe *probe = &chosen->sample->probes[chosen->probes[i]];
        ats_text_add(&text, "%s%lld@%lld(%s)", i > 0 ? "; " : "", (long long)probe->index,
                     (long long)probe->position, probe->role != NULL ? probe->role : "");
    }
    return ats_text_done(&text, out);
}
