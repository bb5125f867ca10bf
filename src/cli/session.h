/* What `run` and `plan` share: suite and plan from the command line.
 * Ownership: a session owns its suite and plan. */
#ifndef ATS_CLI_SESSION_H
#define ATS_CLI_SESSION_H

#include "cli/command.h"
#include "cli/json.h"
#include "engine/plan.h"

typedef struct ats_session {
    ats_suite *suite;
    ats_plan *plan;
} ats_session;

/* Options capture, set and backend, and the first operand. */
ATS_MUST_CHECK ats_code ats_session_open(const ats_args *args, ats_session *out, ats_err *err);
void ats_session_close(ats_session *session);

#define ATS_SESSION_OPTIONS                                                                        \
    {"capture", 0, ATS_OPT_LIST, "FILE", "capture, in place of the suite's", false},               \
        {"set", 0, ATS_OPT_LIST, "KEY=VALUE", "override a field of the suite", false},             \
        {"memory", 0, ATS_OPT_VALUE, "SIZE", "memory to use, such as 2G", false},                  \
        {"scratch", 0, ATS_OPT_VALUE, "DIR", "folder on a disk for what memory cannot hold",       \
         false},                                                                                   \
    {                                                                                              \
        "backend", 0, ATS_OPT_VALUE, "NAME", "auto, reference, cpu, cuda or cublas", false         \
    }

/* "1.5 MiB" */
const char *ats_human_bytes(int64_t bytes, char *out, size_t size);
/* "12 ms", "3.4 s", "12 min", "3.4 h" */
const char *ats_human_seconds(double seconds, char *out, size_t size);

#endif
