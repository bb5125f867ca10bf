/* Linked around the program (--wrap): lists the calls of calls.h by call stack, or fails one.
 *
 * A stack is the chain of return addresses inside the program, so that every way to a call is told
 * from every other. ATS_ERRORS_LOG: a file that gets one line for each new stack: its hash, the
 * call, the addresses from the call outwards. ATS_ERRORS_FAIL: the hash of the stack whose first
 * call fails. It appends "fired" to the log. */
#include "calls.h"

#include <errno.h>
#include <execinfo.h>
#include <fcntl.h>
#include <jansson.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/arena.h"

extern char __executable_start, etext;
enum { FRAMES = 40, SEEN = 1 << 16 };
static const uint64_t PRIME = 0x100000001b3;
static uint64_t seen[SEEN];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static uint64_t wanted;
static int out = -1;
static bool ready, fired;

int __real_open(const char *path, int flags, ...);
ssize_t __real_write(int fd, const void *data, size_t size);

static void get_ready(void)
{
    const char *log = getenv("ATS_ERRORS_LOG"), *fail = getenv("ATS_ERRORS_FAIL");
    ready = true;
    if (log != NULL) out = __real_open(log, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0644);
    if (fail != NULL) wanted = strtoull(fail, NULL, 16);
}

/* Was the stack new? */
static bool remember(uint64_t hash)
{
    for (uint64_t i = hash % SEEN;; i = (i + 1) % SEEN) {
        if (seen[i] == hash) return false;
        if (seen[i] != 0) continue;
        seen[i] = hash;
        return true;
    }
}

static void log_stack(uint64_t hash, const char *name, void *const *frames, int n)
{
    char text[2048];
    int used = snprintf(text, sizeof text, "%016llx %s", (unsigned long long)hash, name);
    for (int i = 0; i < n && used < (int)sizeof text - 32; i++)
        used += snprintf(text + used, sizeof text - (size_t)used, " %lx",
                         (unsigned long)((char *)frames[i] - &__executable_start));
    text[used++] = '\n';
    (void)!__real_write(out, text, (size_t)used);
}

__attribute__((noinline)) bool ats_call_fails(const char *name, int why)
{
    void *frames[FRAMES];
    int n = 0;
    bool hit = false;
    const int kept = errno;
    pthread_mutex_lock(&lock);
    if (!ready) get_ready();
    if (out >= 0 && !fired) {
        const int all = backtrace(frames, FRAMES);
        uint64_t hash = 0xcbf29ce484222325; /* FNV-1a, word by word */
        for (int i = 2; i < all; i++)       /* after this function and its caller */
            if ((char *)frames[i] >= &__executable_start && (char *)frames[i] < &etext)
                frames[n++] = frames[i];
        for (const char *c = name; *c != '\0'; c++) hash = (hash ^ (unsigned char)*c) * PRIME;
        for (int i = 0; i < n; i++)
            hash = (hash ^ (uint64_t)((char *)frames[i] - &__executable_start)) * PRIME;
        if (wanted == 0 && remember(hash)) log_stack(hash, name, frames, n);
        hit = wanted != 0 && hash == wanted;
        if (hit) {
            fired = true;
            (void)!__real_write(out, "fired\n", 6);
        }
    }
    pthread_mutex_unlock(&lock);
    errno = hit ? why : kept;
    return hit;
}

/* Those that calls.h cannot say. */
json_t *__real_json_real(double value);
json_t *__wrap_json_real(double value);
json_t *__wrap_json_real(double value)
{
    return ats_call_fails("json_real", ENOMEM) ? NULL : __real_json_real(value);
}

json_t *__wrap_json_pack(const char *fmt, ...);
json_t *__wrap_json_pack(const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    json_t *made = json_vpack_ex(NULL, 0, fmt, args); /* takes the references in any case */
    va_end(args);
    if (!ats_call_fails("json_pack", ENOMEM)) return made;
    json_decref(made);
    return NULL;
}

/* The functions of jansson that take a reference do so when they fail too. */
int __wrap_json_object_set_new(json_t *object, const char *key, json_t *value);
int __real_json_object_set_new(json_t *object, const char *key, json_t *value);
int __wrap_json_object_set_new(json_t *object, const char *key, json_t *value)
{
    if (!ats_call_fails("json_object_set_new", ENOMEM))
        return __real_json_object_set_new(object, key, value);
    json_decref(value);
    return -1;
}

int __wrap_json_array_append_new(json_t *array, json_t *value);
int __real_json_array_append_new(json_t *array, json_t *value);
int __wrap_json_array_append_new(json_t *array, json_t *value)
{
    if (!ats_call_fails("json_array_append_new", ENOMEM))
        return __real_json_array_append_new(array, value);
    json_decref(value);
    return -1;
}

static ats_code no_memory(ats_err *err)
{
    return ats_fail(err, ATS_E_MEMORY, "out of memory, as the sweep of errors wishes");
}

ats_code __real_ats_arena_alloc(ats_arena *a, int64_t count, size_t size, void **to, ats_err *err);
ats_code __wrap_ats_arena_alloc(ats_arena *a, int64_t count, size_t size, void **to, ats_err *err);
ats_code __wrap_ats_arena_alloc(ats_arena *a, int64_t count, size_t size, void **to, ats_err *err)
{
    if (ats_call_fails("ats_arena_alloc", ENOMEM)) return no_memory(err);
    return __real_ats_arena_alloc(a, count, size, to, err);
}

ats_code __real_ats_arena_zalloc(ats_arena *a, int64_t count, size_t size, void **to, ats_err *err);
ats_code __wrap_ats_arena_zalloc(ats_arena *a, int64_t count, size_t size, void **to, ats_err *err);
ats_code __wrap_ats_arena_zalloc(ats_arena *a, int64_t count, size_t size, void **to, ats_err *err)
{
    if (ats_call_fails("ats_arena_zalloc", ENOMEM)) return no_memory(err);
    return __real_ats_arena_zalloc(a, count, size, to, err);
}

ats_code __real_ats_arena_strdup(ats_arena *a, const char *text, const char **to, ats_err *err);
ats_code __wrap_ats_arena_strdup(ats_arena *a, const char *text, const char **to, ats_err *err);
ats_code __wrap_ats_arena_strdup(ats_arena *a, const char *text, const char **to, ats_err *err)
{
    if (ats_call_fails("ats_arena_strdup", ENOMEM)) return no_memory(err);
    return __real_ats_arena_strdup(a, text, to, err);
}

ats_code __real_ats_arena_printf(ats_arena *a, const char **to, ats_err *err, const char *fmt, ...);
ats_code __wrap_ats_arena_printf(ats_arena *a, const char **to, ats_err *err, const char *fmt, ...)
    ATS_PRINTF(4, 5);
ats_code __wrap_ats_arena_printf(ats_arena *a, const char **to, ats_err *err, const char *fmt, ...)
{
    static _Thread_local char text[1 << 16];
    va_list args;
    if (ats_call_fails("ats_arena_printf", ENOMEM)) return no_memory(err);
    va_start(args, fmt);
    vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    return __real_ats_arena_printf(a, to, err, "%s", text);
}
