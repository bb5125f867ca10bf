#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "perturb/place.h"
#include "perturb/target.h"

/* Filler rows of one side of the span, or all of them. */
typedef struct side {
    const int64_t *rows; /* [count], ascending */
    int64_t count;
} side;

static ats_code too_few(const ats_build *ctx, const ats_place *place, int64_t wanted, int64_t have,
                        ats_err *err)
{
    return ats_fail(err, ATS_E_SUITE,
                    "%s with placement %s needs %lld filler rows (outside every named span, after "
                    "the first %d rows, before the first probe), and there are %lld; ask for fewer "
                    "rows or another placement",
                    ctx->family->kind, place->placement, (long long)wanted, ATS_START_ROWS,
                    (long long)have);
}

/* Filler rows that `units` units with gaps between them reach over. */
static int64_t reach(const ats_place *place, int64_t units)
{
    return units > 0 ? units * place->unit_rows + (units - 1) * place->gap : 0;
}

/* `units` units from the end of `from` that is next to the span, ascending. */
static void take(const ats_place *place, side from, bool last, int64_t units, int64_t *out)
{
    const int64_t first = last ? from.count - reach(place, units) : 0;
    for (int64_t u = 0; u < units; u++)
        for (int64_t r = 0; r < place->unit_rows; r++)
            *out++ = from.rows[first + u * (place->unit_rows + place->gap) + r];
}

static ats_code take_beside(const ats_build *ctx, const ats_place *place, side all, int64_t before,
                            int64_t *out, ats_err *err)
{
    int64_t split = 0;
    while (split < all.count && all.rows[split] < place->start) split++;
    const side left = {all.rows, split}, right = {all.rows + split, all.count - split};
    const int64_t after = place->units - before;
    if (reach(place, before) > left.count)
        return too_few(ctx, place, reach(place, before), left.count, err);
    if (reach(place, after) > right.count)
        return too_few(ctx, place, reach(place, after), right.count, err);
    take(place, left, true, before, out);
    take(place, right, false, after, out + before * place->unit_rows);
    return ATS_OK;
}

static int compare_rows(const void *a, const void *b)
{
    const int64_t *x = a, *y = b;
    return (*x > *y) - (*x < *y);
}

/* Disjoint units at random: choose slots among what is left when each unit counts as one. */
static ats_code take_random(const ats_build *ctx, const ats_place *place, side all, int64_t *out,
                            ats_err *err)
{
    const int64_t slots = all.count - place->units * (place->unit_rows - 1);
    ats_rng rng = ats_place_stream(ctx, "place");
    int64_t *slot = NULL;
    ats_code rc;
    ATS_TRY(ATS_NEW(ctx->arena, slots, &slot, err));
    for (int64_t i = 0; i < slots; i++) slot[i] = i;
    ats_rng_choose(&rng, slot, slots, place->units);
    qsort(slot, (size_t)place->units, sizeof *slot, compare_rows);
    for (int64_t u = 0; u < place->units; u++)
        for (int64_t r = 0; r < place->unit_rows; r++)
            *out++ = all.rows[slot[u] + u * (place->unit_rows - 1) + r];
out:
    return rc;
}

ats_code ats_place_filler(const ats_build *ctx, const ats_place *place, int64_t **out, ats_err *err)
{
    const int64_t total = place->units * place->unit_rows;
    int64_t *filler = NULL, *rows = NULL, count = 0;
    ats_code rc;
    ATS_TRY(ats_filler_rows(ctx, place->start - place->free_zone, place->stop + place->free_zone,
                            &filler, &count, err));
    if (total > count) ATS_TRY(too_few(ctx, place, total, count, err));
    ATS_TRY(ATS_NEW(ctx->arena, total, &rows, err));
    const side all = {filler, count};
    if (strcmp(place->placement, "random") == 0) {
        ATS_TRY(take_random(ctx, place, all, rows, err));
    } else if (strcmp(place->placement, "depth") == 0) {
        const int64_t first = (int64_t)llround(place->depth * (double)(count - total));
        memcpy(rows, filler + first, (size_t)total * sizeof *rows);
    } else {
        const bool before = strcmp(place->placement, "before") == 0;
        const bool after = strcmp(place->placement, "after") == 0;
        const int64_t left = before ? place->units : (after ? 0 : (place->units + 1) / 2);
        ATS_TRY(take_beside(ctx, place, all, left, rows, err));
    }
    *out = rows;
out:
    return rc;
}
