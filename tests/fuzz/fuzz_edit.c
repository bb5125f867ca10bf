/* Edit scripts: whatever the bytes name, an emitted script passes its check or is refused; one that
 * passes is printed and names every base row once. */
#include <stdlib.h>
#include <string.h>

#include "fuzz.h"
#include "perturb/script.h"

typedef struct reader {
    const uint8_t *data;
    size_t size;
} reader;

static int64_t take(reader *r, int64_t bound)
{
    uint8_t two[2] = {0, 0};
    const size_t n = r->size < 2 ? r->size : 2;
    memcpy(two, r->data, n);
    r->data += n;
    r->size -= n;
    return (int64_t)(two[0] | two[1] << 8) % bound - 2;
}

static ats_code add(reader *r, ats_script *script, int64_t n, ats_err *err)
{
    const int64_t kind = take(r, 5) + 2, a = take(r, n + 4), b = take(r, n + 4), c = take(r, 40);
    if (kind == 0) return ats_script_insert(script, a, c, b, err);
    if (kind == 1) return ats_script_hide(script, a, b, err);
    if (kind == 2) return ats_script_move(script, a, b, c * 7, err);
    if (kind == 3) return ats_script_swap(script, a, b, c, (a & 1) != 0, true, err);
    return ats_script_overwrite(script, a, b, c, err);
}

static void check(ats_arena *arena, ats_edit *edit, int64_t n, ats_err *err)
{
    int64_t position[64], rows[64];
    const char *text = NULL;
    int64_t named = 0;
    for (int64_t i = 0; i < 64; i++) position[i] = rows[i] = i;
    edit->side = (ats_side){.count = 40, .position = rows};
    const ats_sample sample = {.id = "fuzz", .n_keys = n, .position = position};
    const ats_layer layer = {.d_qk = 1, .d_v = 1};
    const bool valid = ats_edit_validate(arena, edit, &sample, &layer, false, err) == ATS_OK;
    for (int64_t i = 0; i < edit->n_segments; i++)
        if (edit->segments[i].kind != ATS_SEG_ROWS)
            named += edit->segments[i].stop - edit->segments[i].start;
    if (!valid) return;
    if (named != n) abort();
    if (ats_edit_print(arena, edit, 0, &text, err) != ATS_OK || text[0] == '\0') abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    reader r = {data, size};
    ats_arena arena = {.blocks = NULL};
    ats_err err = {.code = ATS_OK};
    ats_edit edit = {.n_segments = 0};
    const int64_t n = take(&r, 60) + 4;
    ats_script script = ats_script_begin(&arena, n);
    bool accepted = true;
    while (r.size > 0 && accepted) accepted = add(&r, &script, n, &err) == ATS_OK;
    if (accepted && ats_script_emit(&script, &edit, &err) == ATS_OK) check(&arena, &edit, n, &err);
    ats_arena_fini(&arena);
    return 0;
}
