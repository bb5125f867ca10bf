#include <stdio.h>

#include "cli/ending.h"
#include "cli/style.h"
#include "engine/journal.h"

static const char *word(const json_t *from, const char *key)
{
    const char *text = json_string_value(json_object_get(from, key));
    return text != NULL ? text : "";
}

static int64_t whole(const json_t *from, const char *key)
{
    return json_integer_value(json_object_get(from, key));
}

static void print_process(const json_t *p)
{
    char bytes[32];
    printf("    ");
    ats_print_text(word(p, "began"));
    printf(" ");
    ats_print_text(word(p, "command"));
    if (json_object_get(p, "shard") != NULL)
        printf(" %lld/%lld", (long long)whole(p, "shard"), (long long)whole(p, "shards"));
    printf(" on ");
    ats_print_text(word(p, "host"));
    printf(", process %lld: ", (long long)whole(p, "pid"));
    if (json_object_get(p, "computed") != NULL)
        printf("%lld samples, ", (long long)whole(p, "computed"));
    printf("%.1f s, at most %s, ", json_real_value(json_object_get(p, "seconds")),
           ats_human_bytes(whole(p, "peak_memory_bytes"), bytes, sizeof bytes));
    ats_print_text(word(p, "ended_as"));
    putchar('\n');
}

ats_code ats_ending_print(const char *result, ats_arena *arena, ats_err *err)
{
    const char *const *lines = NULL;
    int64_t n = 0;
    ats_code rc = ats_journal_read(arena, result, &lines, &n, err);
    if (rc != ATS_OK || n == 0) return rc;
    printf("  made by %lld process%s:\n", (long long)n, n == 1 ? "" : "es");
    for (int64_t i = 0; i < n; i++) {
        json_t *process = json_loads(lines[i], 0, NULL);
        if (json_is_object(process)) print_process(process);
        json_decref(process);
    }
    return ATS_OK;
}
