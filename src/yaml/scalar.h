/* Typed values of nodes: the field decides the type, never the look of the text.
 *
 * Text fields keep `no`, `010` and `12:30`; booleans are true and false; numbers are those of the
 * YAML 1.2 core schema, read in the C locale, without leading zeros, `_`, `,` or `:`. A refusal
 * says how to write what was meant. */
#ifndef ATS_YAML_SCALAR_H
#define ATS_YAML_SCALAR_H

#include "yaml/node.h"

typedef struct ats_strings {
    int64_t count;
    const char *const *items;
} ats_strings;

/* What reading needs; `what` names the field in messages. Readers return false after adding an
 * issue, and write *out only on success. */
typedef struct ats_reader {
    ats_arena *arena;
    ats_issues *issues;
    ats_err *err; /* of memory: checked through `rc` */
    ats_code rc;  /* first failure that is no issue */
    void *user;
} ats_reader;

/* Typed memory of the reader's arena. False without memory, or when `rc` tells of an earlier
 * failure, which stays. */
#define ATS_READ_NEW(reader, n, out) ATS_READ_BY_(ATS_NEW, reader, n, out)
#define ATS_READ_NEW0(reader, n, out) ATS_READ_BY_(ATS_NEW0, reader, n, out)
#define ATS_READ_BY_(new, reader, n, out)                                                          \
    ((reader)->rc == ATS_OK &&                                                                     \
     ((reader)->rc = new ((reader)->arena, (n), (out), (reader)->err)) == ATS_OK)

bool ats_read_text(ats_reader *reader, const ats_node *node, const char *what, const char **out);
bool ats_read_bool(ats_reader *reader, const ats_node *node, const char *what, bool *out);
/* Whole numbers: digits with a sign, 0x1F, 0o17. 1e3 and 5.0 are refused with the digits to write.
 */
bool ats_read_int(ats_reader *reader, const ats_node *node, const char *what, int64_t min,
                  int64_t max, int64_t *out);
/* Also 1e3, .5, +5; .inf and .nan only with `special`. min and max are inclusive, NaN: no bound. */
bool ats_read_real(ats_reader *reader, const ats_node *node, const char *what, double min,
                   double max, bool special, double *out);
/* One of words (NULL-terminated); *out is the entry of the list. */
bool ats_read_word(ats_reader *reader, const ats_node *node, const char *what,
                   const char *const *words, const char **out);
/* One text or a list of texts. */
bool ats_read_texts(ats_reader *reader, const ats_node *node, const char *what, ats_strings *out);

/* A number as above, without a node: false and a hint (static, or in hint[size]) when it is none.
 */
bool ats_parse_real(const char *text, bool special, double *out, char *hint, size_t size);
bool ats_parse_int(const char *text, int64_t *out, char *hint, size_t size);
/* Shortest text that reads back as the same number, C locale: "0.8", "1000", "1e+20". */
void ats_format_real(double x, char out[32]);

#endif
