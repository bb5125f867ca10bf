/* The morning summary never passes its 25 lines, and what must be seen is among them. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "report/summary.h"
#include "support/check.h"

enum { MANY = 40 };

static ats_summary_reason reasons[MANY];
static ats_summary_weakest weakest[MANY];
static ats_summary_gate gates[MANY];
static char names[MANY][16], sentences[MANY][32];

static ats_summary make(int64_t n_reasons, int64_t n_weakest, int64_t n_gates, int64_t n_failed)
{
    for (int64_t i = 0; i < MANY; i++) {
        snprintf(names[i], sizeof names[i], "p%lld", (long long)i);
        snprintf(sentences[i], sizeof sentences[i], "gate number %lld", (long long)i);
        reasons[i] = (ats_summary_reason){"skipped", MANY - i, names[i]};
        weakest[i] = (ats_summary_weakest){.perturbation = names[i],
                                           .layer = 3,
                                           .head = i,
                                           .treatment = -2,
                                           .control = i % 2 ? (double)NAN : -0.01,
                                           .n_heads = ATS_SUMMARY_HEADS};
        for (int64_t h = 0; h < ATS_SUMMARY_HEADS; h++)
            weakest[i].heads[h] = (ats_summary_head){3, i + h, -2 + 0.1 * (double)h};
        gates[i] =
            (ats_summary_gate){.judged = true, .passed = i >= n_failed, .sentence = sentences[i]};
    }
    return (ats_summary){.suite = "s",
                         .model = "m",
                         .captures = "c.h5",
                         .backend = "cpu",
                         .target = "gold",
                         .path = "out.h5",
                         .next = "attnstress explain out.h5",
                         .n_reasons = n_reasons,
                         .reasons = reasons,
                         .n_weakest = n_weakest,
                         .weakest = weakest,
                         .sharpness = {[ATS_CAUSE_NORM] = 2, [ATS_CAUSE_MIXED] = 5},
                         .n_gates = n_gates,
                         .gates = gates};
}

static int64_t count(const char *text, const char *what)
{
    int64_t n = 0;
    for (const char *at = text; (at = strstr(at, what)) != NULL; at += strlen(what)) n++;
    return n;
}

static void no_size_passes_the_limit(void **state)
{
    (void)state;
    static const int64_t sizes[] = {0, 1, 4, 5, 6, 9, 10, 11, 12, 16, 19, 20, 21, MANY};
    enum { SIZES = sizeof sizes / sizeof *sizes };
    for (int r = 0; r < SIZES; r++)
        for (int w = 0; w < SIZES; w++)
            for (int g = 0; g < SIZES; g++)
                for (int f = 0; f <= g; f++) {
                    const ats_summary s = make(sizes[r], sizes[w], sizes[g], sizes[f]);
                    ats_arena arena = {.blocks = NULL};
                    const char *text = NULL;
                    ats_err err;
                    assert_ok(ats_summary_text(&arena, &s, &text, &err), &err);
                    assert_true(count(text, "\n") <= ATS_SUMMARY_LINES);
                    /* failed gates up to five, and ten perturbations, are always there */
                    assert_true(count(text, "gate number") >= (sizes[f] < 5 ? sizes[f] : 5));
                    assert_true(count(text, " 3/") >= (sizes[w] < 10 ? sizes[w] : 10));
                    assert_int_equal(count(text, "next: attnstress explain"), 1);
                    ats_arena_fini(&arena);
                }
}

static void lines_say_what_is_weak(void **state)
{
    (void)state;
    const ats_summary s = make(6, 3, 2, 1);
    ats_arena arena = {.blocks = NULL};
    const char *text = NULL;
    ats_err err;
    assert_ok(ats_summary_text(&arena, &s, &text, &err), &err);
    assert_says(text, "layers x heads by cause: norm 2, mixed 5; the report has the map\n");
    assert_says(text, "  skipped 40: p0\n", "  and 71 more cases for other reasons\n",
                "  p0  3/0 -2  3/1 -1.9  3/2 -1.8  3/3 -1.7  3/4 -1.6  control -0.01\n",
                "  p1  3/1 -2  3/2 -1.9  3/3 -1.8  3/4 -1.7  3/5 -1.6\n", "1 of 2 gates failed\n",
                "  gate number 0\n  gate number 1\n");
    ats_arena_fini(&arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(no_size_passes_the_limit),
        cmocka_unit_test(lines_say_what_is_weak),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
