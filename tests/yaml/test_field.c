#include "yaml/field.h"

#include "yaml/fixture.h"

typedef struct inner {
    double tau;
    bool fast;
} inner;

typedef struct outer {
    const char *name, *mode;
    int64_t level;
    ats_strings files;
    inner inner;
} outer;

static const char *const modes[] = {"slow", "quick", NULL};

static const ats_field inner_fields[] = {
    {.name = "tau",
     .type = ATS_FIELD_REAL,
     .offset = offsetof(inner, tau),
     .doc = "Temperature.",
     .standard = "1",
     .min = 1e-6,
     .max = 1e6},
    {.name = "fast",
     .type = ATS_FIELD_BOOL,
     .offset = offsetof(inner, fast),
     .doc = "Fast.",
     .standard = "false"},
};
static const ats_table inner_table = {"inner", "Inner things.", inner_fields, 2};

static const ats_field outer_fields[] = {
    {.name = "name",
     .type = ATS_FIELD_TEXT,
     .offset = offsetof(outer, name),
     .doc = "Name.",
     .required = true},
    {.name = "mode",
     .type = ATS_FIELD_WORD,
     .offset = offsetof(outer, mode),
     .doc = "Mode.",
     .standard = "slow",
     .words = modes,
     .outside_identity = true},
    {.name = "level",
     .type = ATS_FIELD_INT,
     .offset = offsetof(outer, level),
     .doc = "Level.",
     .standard = "3",
     .min = 1,
     .max = 22},
    {.name = "files", .type = ATS_FIELD_TEXTS, .offset = offsetof(outer, files), .doc = "Files."},
    {.name = "inner",
     .type = ATS_FIELD_SECTION,
     .offset = offsetof(outer, inner),
     .doc = "Inner.",
     .table = &inner_table},
};
static const ats_table outer_table = {"outer", "Outer things.", outer_fields, 5};

static void a_table_fills_a_struct_with_values_and_defaults(void **state)
{
    (void)state;
    fixture f;
    outer o = {.name = NULL};
    parse(&f, "name: no\nfiles: [a, b]\ninner: {tau: .5}\n");
    assert_true(ats_fields_read(&f.reader, &outer_table, f.root, &o));
    assert_string_equal(o.name, "no");
    assert_string_equal(o.mode, "slow");
    assert_int_equal(o.level, 3);
    assert_int_equal(o.files.count, 2);
    assert_string_equal(o.files.items[1], "b");
    assert_near(o.inner.tau, 0.5, 0);
    assert_false(o.inner.fast);
    drop(&f);
}

static void every_fault_is_told(void **state)
{
    (void)state;
    fixture f;
    outer o = {.name = NULL};
    parse(&f, "modus: slow\nlevle: 4\nlevel: 99\ninner:\n  tua: 3\n  fast: yes\n");
    assert_false(ats_fields_read(&f.reader, &outer_table, f.root, &o));
    assert_says(report(&f), "t.yaml:1:1: error: outer lacks the key 'name'",
                "unknown key 'levle' in outer; did you mean 'level'?", "99 is outside 1 to 22",
                "unknown key 'tua' in inner; did you mean 'tau'?", "t.yaml:6:9", "write true");
    assert_int_equal(f.issues.count, 6);
    drop(&f);
}

static void canonical_text_reads_back_as_the_same(void **state)
{
    (void)state;
    fixture f, again;
    outer o = {.name = NULL}, p = {.name = NULL};
    parse(&f, "inner: {tau: 1e3}\nname: '12:30 #'\nmode: quick\nfiles: a b\n");
    assert_true(ats_fields_read(&f.reader, &outer_table, f.root, &o));
    ats_text text = {.arena = &f.arena, .err = &f.err}, id = text;
    const char *out = NULL, *identity = NULL;
    ats_fields_write(&text, &outer_table, f.root, &o, 0, false);
    ats_fields_write(&id, &outer_table, f.root, &o, 0, true);
    assert_ok(ats_text_done(&text, &out), &f.err);
    assert_ok(ats_text_done(&id, &identity), &f.err);
    assert_string_equal(out, "name: \"12:30 #\"\nmode: quick\nlevel: 3\nfiles: [\"a b\"]\n"
                             "inner:\n  tau: 1000\n  fast: false\n");
    assert_null(strstr(identity, "mode"));
    parse(&again, out);
    assert_true(ats_fields_read(&again.reader, &outer_table, again.root, &p));
    assert_string_equal(p.name, o.name);
    assert_near(p.inner.tau, 1000, 0);
    drop(&again);
    drop(&f);
}

static void schema_and_docs_come_from_the_table(void **state)
{
    (void)state;
    ats_arena arena = {.blocks = NULL};
    ats_err err;
    ats_text schema = {.arena = &arena, .err = &err}, docs = schema;
    const char *out = NULL;
    ats_fields_schema(&schema, &outer_table);
    assert_ok(ats_text_done(&schema, &out), &err);
    assert_says(out, "\"required\": [\"name\"]", "\"enum\": [\"slow\", \"quick\"]",
                "\"minimum\": 1, \"maximum\": 22", "\"additionalProperties\": false");
    ats_fields_markdown(&docs, &outer_table, "");
    assert_ok(ats_text_done(&docs, &out), &err);
    assert_says(out, "| `level` | whole number, 1 to 22 | `3` | Level. |", "### `inner`");
    ats_arena_fini(&arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_table_fills_a_struct_with_values_and_defaults),
        cmocka_unit_test(every_fault_is_told),
        cmocka_unit_test(canonical_text_reads_back_as_the_same),
        cmocka_unit_test(schema_and_docs_come_from_the_table),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
