#include "base/lock.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/log.h"

enum { RENEW_SECONDS = 30, DEAD_SECONDS = 600 };

/* What a lock says of its holder. */
typedef struct holder {
    long pid;
    unsigned long long started; /* ticks since the boot */
    char boot[64], host[96], space[64], job[128], since[32], purpose[256];
} holder;

static void read_line(const char *path, char *out, size_t size)
{
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    const ssize_t got = fd < 0 ? -1 : read(fd, out, size - 1);
    if (fd >= 0) close(fd);
    out[got > 0 ? got : 0] = '\0';
    out[strcspn(out, "\n")] = '\0';
}

/* State and start of a process, fields 3 and 22 of its stat; false: it is gone, or a zombie. */
static bool process_runs(long pid, unsigned long long *started)
{
    char path[64], text[1024], state = '\0';
    snprintf(path, sizeof path, "/proc/%ld/stat", pid);
    read_line(path, text, sizeof text);
    const char *at = strrchr(text, ')');
    if (at == NULL || sscanf(at + 1, " %c", &state) != 1) return false;
    if (state == 'Z' || state == 'X') return false;
    at++;
    for (int field = 3; field < 22 && at != NULL; field++) {
        at = strchr(at + 1, ' ');
    }
    return at != NULL && sscanf(at, "%llu", started) == 1;
}

static void keep_line(char *text)
{
    for (; *text != '\0'; text++)
        if ((unsigned char)*text < ' ' || *text == 0x7f) *text = ' ';
}

static holder myself(const char *purpose, const char *job)
{
    holder h = {.pid = (long)getpid()};
    const time_t now = time(NULL);
    struct tm utc;
    if (!process_runs(h.pid, &h.started)) h.started = 0;
    read_line("/proc/sys/kernel/random/boot_id", h.boot, sizeof h.boot);
    if (gethostname(h.host, sizeof h.host - 1) != 0) snprintf(h.host, sizeof h.host, "unknown");
    const ssize_t n = readlink("/proc/self/ns/pid", h.space, sizeof h.space - 1);
    h.space[n > 0 ? n : 0] = '\0';
    if (gmtime_r(&now, &utc) != NULL) strftime(h.since, sizeof h.since, "%Y-%m-%dT%H:%M:%SZ", &utc);
    snprintf(h.job, sizeof h.job, "%s", job != NULL ? job : "");
    snprintf(h.purpose, sizeof h.purpose, "%s", purpose);
    keep_line(h.job);
    keep_line(h.purpose);
    return h;
}

static void write_text(const holder *h, char *out, size_t size)
{
    snprintf(out, size,
             "attnstress lock 1\npid %ld\nstarted %llu\nboot %s\nhost %s\nspace %s\njob %s\n"
             "since %s\npurpose %s\n",
             h->pid, h->started, h->boot, h->host, h->space, h->job, h->since, h->purpose);
}

static void take_field(const char *text, const char *name, char *out, size_t size)
{
    char key[32];
    snprintf(key, sizeof key, "\n%s ", name);
    const char *at = strstr(text, key);
    out[0] = '\0';
    if (at == NULL) return;
    at += strlen(key);
    snprintf(out, size, "%.*s", (int)strcspn(at, "\n"), at);
}

static bool read_text(const char *path, char *text, size_t size)
{
    const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    const ssize_t got = fd < 0 ? -1 : read(fd, text, size - 1);
    if (fd >= 0) close(fd);
    text[got > 0 ? got : 0] = '\0';
    return got > 0;
}

static bool read_holder(const char *path, holder *h)
{
    char text[1024], number[32];
    *h = (holder){.pid = 0};
    if (!read_text(path, text, sizeof text) || strncmp(text, "attnstress lock 1\n", 18) != 0)
        return false;
    take_field(text, "pid", number, sizeof number);
    h->pid = strtol(number, NULL, 10);
    take_field(text, "started", number, sizeof number);
    h->started = strtoull(number, NULL, 10);
    take_field(text, "boot", h->boot, sizeof h->boot);
    take_field(text, "host", h->host, sizeof h->host);
    take_field(text, "space", h->space, sizeof h->space);
    take_field(text, "job", h->job, sizeof h->job);
    take_field(text, "since", h->since, sizeof h->since);
    take_field(text, "purpose", h->purpose, sizeof h->purpose);
    return h->pid > 0;
}

/* Seconds since the file was touched, by the clock of whoever stores it: against a new file. A time
 * ahead of that clock is as old: the clock was set back since, and no living holder touched it. */
static double silence(const char *folder, const char *path)
{
    char probe[4200];
    struct stat lock, now;
    if (stat(path, &lock) != 0) return 1e9;
    snprintf(probe, sizeof probe, "%s/.clock.%ld", folder, (long)getpid());
    const int fd = open(probe, O_WRONLY | O_CREAT | O_CLOEXEC, 0666);
    const bool made = fd >= 0 && futimens(fd, NULL) == 0 && fstat(fd, &now) == 0;
    if (fd >= 0) close(fd);
    unlink(probe);
    return made ? fabs(difftime(now.st_mtime, lock.st_mtime)) : 0;
}

static bool lives(const char *folder, const char *path, const holder *me, holder *h)
{
    unsigned long long started = 0;
    if (!read_holder(path, h)) return silence(folder, path) < DEAD_SECONDS;
    if (strcmp(h->host, me->host) == 0 && strcmp(h->space, me->space) == 0)
        return strcmp(h->boot, me->boot) == 0 && process_runs(h->pid, &started) &&
               started == h->started;
    if (h->job[0] != '\0' && strcmp(h->job, me->job) == 0) return false;
    return silence(folder, path) < DEAD_SECONDS;
}

static bool ends_with(const char *text, const char *tail)
{
    const size_t n = strlen(text), m = strlen(tail);
    return n >= m && strcmp(text + n - m, tail) == 0;
}

static void describe(const char *path, const holder *h, const holder *me, char *out, size_t size)
{
    const bool here = strcmp(h->host, me->host) == 0;
    if (h->pid == 0)
        snprintf(out, size, "an unknown process holds %s", path);
    else
        snprintf(out, size, "process %ld on %s%s, since %s, %s (%s)", h->pid, h->host,
                 here ? " (this machine)" : "", h->since, h->purpose, path);
}

/* The first living lock that is no friend; dead ones are removed. `name`: our own, never a friend.
 */
static bool find_rival(const char *folder, const char *name, const char *friends, const holder *me,
                       char *who, size_t size)
{
    DIR *open_folder = opendir(folder);
    bool found = false;
    if (open_folder == NULL) return false;
    for (struct dirent *entry; !found && (entry = readdir(open_folder)) != NULL;) {
        char path[4400];
        holder h;
        if (!ends_with(entry->d_name, ".lock")) continue;
        snprintf(path, sizeof path, "%s/%s", folder, entry->d_name);
        if (!lives(folder, path, me, &h)) {
            if (h.pid > 0)
                ats_info("the lock of process %ld on %s, which is gone, is taken over", h.pid,
                         h.host);
            unlink(path);
            continue;
        }
        const bool own = name != NULL && strcmp(entry->d_name, name) == 0;
        if (!own && friends != NULL && ends_with(entry->d_name, friends)) continue;
        describe(path, &h, me, who, size);
        found = true;
    }
    closedir(open_folder);
    return found;
}

static ats_code write_lock(const ats_lock *lock, ats_err *err)
{
    char fresh[4200];
    snprintf(fresh, sizeof fresh, "%s.%ld.new", lock->path, (long)getpid());
    const int fd = open(fresh, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    const size_t length = strlen(lock->text);
    errno = fd < 0 ? errno : ENOSPC;
    bool good = fd >= 0 && write(fd, lock->text, length) == (ssize_t)length;
    if (fd >= 0 && close(fd) != 0) good = false;
    if (good && rename(fresh, lock->path) == 0) return ATS_OK;
    const int why = errno;
    unlink(fresh);
    return ats_fail(err, ATS_E_IO, "%s: the lock cannot be written: %s", lock->path, strerror(why));
}

static void *renew(void *ctx)
{
    ats_lock *lock = ctx;
    pthread_mutex_lock(&lock->mutex);
    while (!lock->ends) {
        struct timespec until;
        clock_gettime(CLOCK_MONOTONIC, &until);
        until.tv_sec += RENEW_SECONDS;
        if (pthread_cond_timedwait(&lock->end, &lock->mutex, &until) == ETIMEDOUT)
            utimensat(AT_FDCWD, lock->path, NULL, 0);
    }
    pthread_mutex_unlock(&lock->mutex);
    return NULL;
}

/* A lock that is not renewed still holds on this machine. */
static void start_renewing(ats_lock *lock)
{
    sigset_t all, before;
    pthread_mutex_init(&lock->mutex, NULL);
    pthread_condattr_t clock;
    pthread_condattr_init(&clock);
    pthread_condattr_setclock(&clock, CLOCK_MONOTONIC); /* no jump of the date stops renewing */
    pthread_cond_init(&lock->end, &clock);
    pthread_condattr_destroy(&clock);
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    lock->renewed = pthread_create(&lock->renewer, NULL, renew, lock) == 0;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
}

static ats_code take(const char *folder, const char *name, const char *friends, const holder *me,
                     ats_lock *out, ats_err *err)
{
    char who[5000];
    if (find_rival(folder, name, friends, me, who, sizeof who))
        return ats_fail(err, ATS_E_LOCK,
                        "%s is in use: %s; two writers would be one too many: wait for it, or stop "
                        "it; only if it is certainly gone, delete that file",
                        folder, who);
    return write_lock(out, err);
}

ats_code ats_lock_take(const char *folder, const char *name, const char *friends,
                       const char *purpose, const char *job, ats_lock *out, ats_err *err)
{
    const holder me = myself(purpose, job);
    memset(out, 0, sizeof *out);
    if (strlen(folder) + strlen(name) + 64 > sizeof out->path)
        return ats_fail(err, ATS_E_USAGE, "%s: the name is too long", folder);
    snprintf(out->path, sizeof out->path, "%s/%s", folder, name);
    write_text(&me, out->text, sizeof out->text);
    /* Between looking and writing nobody else may look; storage that cannot lock goes without. */
    const int fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    ats_code rc = ATS_OK;
    if (fd < 0)
        rc = ats_fail(err, ATS_E_IO, "%s: cannot be opened: %s", folder, strerror(errno));
    else {
        while (flock(fd, LOCK_EX) != 0 && errno == EINTR) continue;
        rc = take(folder, name, friends, &me, out, err);
        close(fd);
    }
    if (rc == ATS_OK) rc = ats_lock_check(out, err);
    if (rc == ATS_OK)
        start_renewing(out);
    else
        out->path[0] = '\0';
    return rc;
}

ats_code ats_lock_check(const ats_lock *lock, ats_err *err)
{
    char text[sizeof lock->text];
    if (!read_text(lock->path, text, sizeof text))
        return ats_fail(err, ATS_E_LOCK,
                        "%s: the lock is gone; someone removed it or its folder, so nothing more "
                        "is written; run it again",
                        lock->path);
    if (strcmp(text, lock->text) == 0) return ATS_OK;
    return ats_fail(err, ATS_E_LOCK,
                    "%s: another process took the lock over, so nothing more is written; let that "
                    "one end",
                    lock->path);
}

bool ats_lock_held(const char *folder, char *who, size_t size)
{
    const holder me = myself("", "");
    return find_rival(folder, NULL, NULL, &me, who, size);
}

void ats_lock_sweep(const char *folder)
{
    DIR *open_folder = opendir(folder);
    if (open_folder == NULL) return;
    for (struct dirent *entry; (entry = readdir(open_folder)) != NULL;)
        if ((ends_with(entry->d_name, ".new") && strstr(entry->d_name, ".lock.") != NULL) ||
            strncmp(entry->d_name, ".clock.", 7) == 0)
            unlinkat(dirfd(open_folder), entry->d_name, 0);
    closedir(open_folder);
}

void ats_lock_drop(ats_lock *lock)
{
    ats_err ignored;
    if (lock->path[0] == '\0') return;
    if (lock->renewed) {
        pthread_mutex_lock(&lock->mutex);
        lock->ends = true;
        pthread_cond_signal(&lock->end);
        pthread_mutex_unlock(&lock->mutex);
        pthread_join(lock->renewer, NULL);
    }
    pthread_cond_destroy(&lock->end);
    pthread_mutex_destroy(&lock->mutex);
    if (ats_lock_check(lock, &ignored) == ATS_OK) unlink(lock->path);
    lock->path[0] = '\0';
}
