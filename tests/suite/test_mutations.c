/* Mutated suites, the same ones in every run: whatever the bytes, the loader answers with a suite
 * or with a report, and neither crashes nor leaks (the sanitizers watch). */
#include "suite/fixture.h"

#include "base/rng.h"

enum { MUTANTS = 3000, ROOM = 4096 };

static const char *const seeds[] = {
    "suite: s\nversion: 1\nseed: 7\nselect: {layers: [0, 4-6], heads: {by: mass, span: gold, min: "
    "0.1}, "
    "probes: {role: answer}}\nspans: {target: gold}\nperturbations:\n  - &a\n    name: near\n    "
    "kind: "
    "distractors\n    positions: [overlay, shift]\n    source: [donor, {similar: {cosine: [0.5, "
    "0.8]}}]\n"
    "    placement: {depth: [0.1, 0.5]}\n    count: [1, 2]\n    exclude: [{count: 1, positions: "
    "shift}]\n"
    "    include: [{count: 64}]\n  - {name: w, kind: mask_window, pattern: slide, width: 8, at: "
    "[0, 1]}\n"
    "metrics: {keep: [tv, mass], top_k: 4}\ngates:\n  - name: g\n    metric: mass\n    span: gold\n"
    "    where: {perturbation: near, count: 2}\n    min: 1e-3\n",
    "suite: t\nx: &x [1, 2]\nperturbations:\n- {kind: temperature, tau: *x}\n- kind: noise\n  "
    "sigma: .5\n"
    "  replicates: 2\noutput: {detail: head, compression: deflate, level: 3}\n",
};

static const char *const pieces[] = {"*a",          "&a ",
                                     "[",           "]",
                                     "{",           "}",
                                     ": ",          "- ",
                                     "\t",          "\n",
                                     "\"",          "'",
                                     "|\n",         "? ",
                                     "#",           ",",
                                     "<<",          "!!int ",
                                     "~",           "---\n",
                                     "\xc3",        "\xef\xbb\xbf",
                                     "1e400",       "\x01",
                                     "%YAML 1.2\n", ".inf",
                                     "-",           "\\",
                                     "@",           "0x",
                                     "...\n",       "\xe2\x80\xa8"};

static size_t edit(ats_rng *rng, char *text, size_t length)
{
    const size_t at = (size_t)ats_rng_below(rng, (int64_t)length + 1);
    const char *piece = pieces[ats_rng_below(rng, sizeof pieces / sizeof *pieces)];
    const size_t n = strlen(piece);
    size_t take = (size_t)ats_rng_below(rng, 12);
    switch (ats_rng_below(rng, 4)) {
    case 0: /* insert */
        if (length + n >= ROOM) break;
        memmove(text + at + n, text + at, length - at);
        memcpy(text + at, piece, n);
        return length + n;
    case 1: /* delete */
        if (at + take > length) take = length - at;
        memmove(text + at, text + at + take, length - at - take);
        return length - take;
    case 2: /* flip */
        if (at < length) text[at] = (char)(text[at] ^ (1 << ats_rng_below(rng, 7)));
        break;
    default: /* repeat a stretch */
        take = take * 8 + 1;
        if (at + take > length) take = length - at;
        if (length + take >= ROOM) break;
        memmove(text + at + take, text + at, length - at);
        return length + take;
    }
    return length;
}

static void mutants_are_loaded_or_refused(void **state)
{
    (void)state;
    char text[ROOM + 1];
    int64_t loaded = 0;
    for (int64_t i = 0; i < MUTANTS; i++) {
        ats_rng rng = ats_rng_stream(1, "suite", "mutant", i, 0, "bytes");
        const char *seed = seeds[i % 2];
        size_t length = strlen(seed);
        memcpy(text, seed, length);
        const int64_t edits = 1 + ats_rng_below(&rng, 4);
        for (int64_t j = 0; j < edits; j++) length = edit(&rng, text, length);
        text[length] = '\0';
        ats_suite *suite = NULL;
        ats_err err = {.code = ATS_OK};
        const ats_code rc = ats_suite_parse("m.yaml", text, NULL, 0, &suite, &err);
        if (rc == ATS_OK) {
            ats_suite *again = must_load(suite->resolved);
            assert_string_equal(again->hash, suite->hash);
            ats_suite_free(again);
            loaded++;
        } else {
            assert_int_equal(rc, ATS_E_SUITE);
            assert_says(err.text, "m.yaml:", ": error: ");
        }
        ats_suite_free(suite);
    }
    assert_true(loaded > 0 && loaded < MUTANTS);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(mutants_are_loaded_or_refused)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
