#include "h5/file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "h5/heap.h"
#include "h5/internal.h"
#include "h5/probe.h"
#include "h5/seal.h"
#include "h5/zstd_filter.h"

_Static_assert(sizeof(ats_h5_id) == sizeof(hid_t), "a handle of HDF5 1.10 or later is 64 bits");

ats_code ats_h5_malloc(size_t bytes, void **out, ats_err *err)
{
    void *memory = malloc(bytes > 0 ? bytes : 1);
    if (memory == NULL)
        return ats_fail(err, ATS_E_MEMORY, "out of memory: %zu bytes were asked for", bytes);
    *out = memory;
    return ATS_OK;
}

ats_code ats_h5_strdup(const char *text, char **out, ats_err *err)
{
    void *copy = NULL;
    ats_code rc = ats_h5_malloc(strlen(text) + 1, &copy, err);
    if (rc != ATS_OK) return rc;
    memcpy(copy, text, strlen(text) + 1);
    *out = copy;
    return ATS_OK;
}

void ats_h5_quiet(void) { H5Eset_auto2(H5E_DEFAULT, NULL, NULL); }

ats_code ats_h5_init(ats_err *err)
{
    /* A file that could not be flushed (disk full) cannot be closed, and HDF5's clean-up at exit
     * crashes on what is left of it. Everything else is closed by its owner. */
    H5dont_atexit();
    if (H5open() < 0) return ats_fail(err, ATS_E_INTERNAL, "the HDF5 library does not start");
    ats_h5_quiet();
    /* Registered even where a plugin of this number is found: ours checks every size. */
    if (H5Zregister(ats_zstd_filter_class()) < 0)
        return ats_fail(err, ATS_E_INTERNAL, "HDF5 refuses the zstd filter (32015)");
    return ATS_OK;
}

static herr_t refuse_external(const char *parent_file, const char *parent_group,
                              const char *child_file, const char *child_object, unsigned *flags,
                              hid_t access, void *ctx)
{
    (void)parent_file, (void)parent_group, (void)child_file, (void)child_object;
    (void)flags, (void)access, (void)ctx;
    return -1;
}

/* Link access that never leaves the file; usable wherever HDF5 takes a link or dataset access list.
 */
static hid_t closed_access(void)
{
    hid_t access = H5Pcreate(H5P_DATASET_ACCESS);
    if (access > 0 && H5Pset_elink_cb(access, refuse_external, NULL) < 0) {
        H5Pclose(access);
        return -1;
    }
    return access;
}

static ats_code file_init(const char *path, ats_h5_file *file, ats_err *err)
{
    ats_code rc;
    *file = (ats_h5_file){.id = 0};
    ATS_TRY(ats_h5_init(err));
    ATS_TRY(ats_h5_strdup(path, &file->path, err));
    file->access = closed_access();
    if (file->access <= 0) {
        file->access = 0;
        rc = ats_h5_error(err, ATS_E_INTERNAL, file, NULL, "no access property list");
    }
out:
    return rc;
}

/* HDF5's cache of metadata grows with what was ever looked at, up to 32 MiB a file; this holds it
 * where it starts. What it drops lies in the kernel's memory. */
static bool bound_cache(hid_t access)
{
    enum { ROOM = 1 << 20 };
    H5AC_cache_config_t config = {.version = H5AC__CURR_CACHE_CONFIG_VERSION};
    if (H5Pget_mdc_config(access, &config) < 0) return false;
    config.set_initial_size = true;
    config.initial_size = config.min_size = config.max_size = ROOM;
    config.incr_mode = H5C_incr__off;
    config.flash_incr_mode = H5C_flash_incr__off;
    config.decr_mode = H5C_decr__off;
    return H5Pset_mdc_config(access, &config) >= 0;
}

/* A sentence for what stat already knows is no file to read. */
static ats_code stat_input(ats_h5_file *file, ats_err *err)
{
    struct stat status;
    if (stat(file->path, &status) != 0)
        return ats_h5_fail(err, errno == EACCES ? ATS_E_IO : ATS_E_INPUT, file, NULL,
                           "cannot be opened: %s", strerror(errno));
    if (S_ISDIR(status.st_mode))
        return ats_h5_fail(err, ATS_E_INPUT, file, NULL, "is a folder, not an HDF5 file");
    if (!S_ISREG(status.st_mode))
        return ats_h5_fail(err, ATS_E_INPUT, file, NULL, "is not an ordinary file");
    if (access(file->path, R_OK) != 0)
        return ats_h5_fail(err, ATS_E_IO, file, NULL, "cannot be read: %s", strerror(errno));
    file->size = (int64_t)status.st_size;
    if (file->size == 0)
        return ats_h5_fail(err, ATS_E_INPUT, file, NULL, "is empty (0 bytes), not an HDF5 file");
    return ATS_OK;
}

static ats_code open_input(const char *path, bool known, ats_h5_file *out, ats_err *err)
{
    ats_h5_file file;
    hid_t access = -1;
    ats_code rc;
    ATS_TRY(file_init(path, &file, err));
    ATS_TRY(stat_input(&file, err));
    if (!known) ATS_TRY(ats_h5_probe(&file, err));
    access = H5Pcreate(H5P_FILE_ACCESS);
    if (access > 0 && bound_cache(access)) file.id = H5Fopen(path, H5F_ACC_RDONLY, access);
    if (file.id <= 0) {
        file.id = 0;
        rc = ats_h5_error(err, ATS_E_INPUT, &file, NULL, "cannot be opened as HDF5");
        goto out;
    }
    if (!known) ATS_TRY(ats_h5_heaps_check(&file, err));
    *out = file;
out:
    if (access > 0) H5Pclose(access);
    if (rc != ATS_OK) ats_h5_close(&file);
    return rc;
}

ats_code ats_h5_open(const char *path, ats_h5_file *out, ats_err *err)
{
    return open_input(path, false, out, err);
}

ats_code ats_h5_open_again(const char *path, ats_h5_file *out, ats_err *err)
{
    return open_input(path, true, out, err);
}

static bool locking_is_off(void)
{
    const char *word = getenv("HDF5_USE_FILE_LOCKING");
    return word != NULL && (strcmp(word, "FALSE") == 0 || strcmp(word, "0") == 0);
}

/* An output that someone has open for writing must not be replaced under their hands. */
static ats_code probe_lock(const ats_h5_file *file, const char *name, ats_err *err)
{
    if (locking_is_off()) return ATS_OK;
    const int fd = open(name, O_RDONLY | O_CLOEXEC);
    if (fd < 0) return ATS_OK;
    const int failed = flock(fd, LOCK_EX | LOCK_NB);
    const int why = errno;
    if (failed == 0) flock(fd, LOCK_UN);
    close(fd);
    if (failed == 0 || (why != EWOULDBLOCK && why != EAGAIN)) return ATS_OK;
    return ats_h5_fail(
        err, ATS_E_LOCK, file, NULL,
        "another process holds the lock of %s; nothing was overwritten; wait for it, "
        "choose another output, or set HDF5_USE_FILE_LOCKING=FALSE",
        name);
}

/* Whatever stands under the output's name is replaced at the end: only an older HDF5 file may be.
 */
static ats_code probe_target(const ats_h5_file *file, ats_err *err)
{
    static const char signature[8] = "\211HDF\r\n\032\n";
    struct stat status;
    char head[sizeof signature];
    if (file->path[0] == '\0')
        return ats_fail(err, ATS_E_USAGE, "the output has an empty name; name a file");
    if (stat(file->path, &status) != 0) return ATS_OK;
    if (S_ISDIR(status.st_mode))
        return ats_h5_fail(err, ATS_E_IO, file, NULL,
                           "is a folder, and the output is a file; name a file in it");
    if (!S_ISREG(status.st_mode))
        return ats_h5_fail(err, ATS_E_IO, file, NULL,
                           "is no ordinary file, and would be replaced by one; name another file");
    if (status.st_size == 0) return ATS_OK;
    const int fd = open(file->path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) return ATS_OK;
    const ssize_t got = read(fd, head, sizeof head);
    close(fd);
    if (got == (ssize_t)sizeof head && memcmp(head, signature, sizeof head) == 0) return ATS_OK;
    return ats_h5_fail(
        err, ATS_E_IO, file, NULL,
        "is there already and is no HDF5 file; nothing was overwritten; name another "
        "file, or move that one away");
}

static hid_t create_v18(const char *name)
{
    const unsigned order = H5P_CRT_ORDER_TRACKED | H5P_CRT_ORDER_INDEXED;
    hid_t access = H5Pcreate(H5P_FILE_ACCESS), creation = H5Pcreate(H5P_FILE_CREATE), id = -1;
    if (access > 0 && creation > 0 &&
        H5Pset_libver_bounds(access, H5F_LIBVER_V18, H5F_LIBVER_V18) >= 0 &&
        H5Pset_link_creation_order(creation, order) >= 0 &&
        H5Pset_attr_creation_order(creation, order) >= 0 &&
        H5Pset_obj_track_times(creation, false) >= 0)
        id = H5Fcreate(name, H5F_ACC_TRUNC, creation, access);
    if (access > 0) H5Pclose(access);
    if (creation > 0) H5Pclose(creation);
    return id;
}

ats_code ats_h5_target_check(const char *path, ats_err *err)
{
    char *name = NULL;
    ats_code rc = ats_h5_strdup(path, &name, err);
    if (rc != ATS_OK) return rc;
    const ats_h5_file file = {.path = name};
    rc = probe_target(&file, err);
    if (rc == ATS_OK) rc = probe_lock(&file, path, err);
    free(name);
    return rc;
}

ats_code ats_h5_create(const char *path, ats_h5_file *out, ats_err *err)
{
    ats_h5_file file;
    void *name = NULL;
    const size_t room = strlen(path) + sizeof ".tmp";
    ats_code rc;
    ATS_TRY(file_init(path, &file, err));
    ATS_TRY(probe_target(&file, err));
    ATS_TRY(probe_lock(&file, path, err));
    void *unwritten = NULL;
    ATS_TRY(ats_h5_malloc(sizeof *file.unwritten, &unwritten, err));
    file.unwritten = unwritten;
    *file.unwritten = 0;
    ATS_TRY(ats_h5_users_make(&file.users, err));
    ATS_TRY(ats_h5_malloc(room, &name, err));
    snprintf(name, room, "%s.tmp", path);
    ATS_TRY(probe_lock(&file, name, err)); /* creating truncates before HDF5 asks for the lock */
    const int fd = open(name, O_RDWR | O_CREAT | O_CLOEXEC, 0666);
    if (fd < 0) {
        rc = ats_h5_fail(err, ATS_E_IO, &file, NULL, "cannot be written (as %s): %s%s",
                         (const char *)name, strerror(errno),
                         errno == ENOENT ? "; make that folder first, or name another file" : "");
        goto out;
    }
    close(fd);
    file.id = create_v18(name);
    if (file.id < 0) {
        file.id = 0;
        rc = ats_h5_error(err, ATS_E_IO, &file, NULL, "%s cannot be created", (const char *)name);
        unlink(name);
        goto out;
    }
    file.temporary = name;
    *out = file;
    return ATS_OK;
out:
    free(name);
    ats_h5_close(&file);
    return rc;
}

static ats_code sync_name(const ats_h5_file *file, const char *name, int flags, ats_err *err)
{
    const int fd = open(name, flags | O_CLOEXEC);
    if (fd < 0 || fsync(fd) != 0) {
        const int why = errno;
        if (fd >= 0) close(fd);
        return ats_h5_fail(err, ATS_E_IO, file, NULL, "cannot be synced to disk (%s): %s", name,
                           strerror(why));
    }
    close(fd);
    return ATS_OK;
}

static ats_code sync_folder(const ats_h5_file *file, ats_err *err)
{
    char *folder = NULL;
    ats_code rc = ats_h5_strdup(file->path, &folder, err);
    if (rc != ATS_OK) return rc;
    char *slash = strrchr(folder, '/');
    if (slash == folder)
        folder[1] = '\0';
    else if (slash != NULL)
        *slash = '\0';
    rc = sync_name(file, slash != NULL ? folder : ".", O_RDONLY | O_DIRECTORY, err);
    free(folder);
    return rc;
}

ats_code ats_h5_sync_folder(const char *path, ats_err *err)
{
    char *name = NULL;
    ats_code rc = ats_h5_strdup(path, &name, err);
    if (rc != ATS_OK) return rc;
    const ats_h5_file file = {.path = name};
    rc = sync_folder(&file, err);
    free(name);
    return rc;
}

ats_code ats_h5_shut(ats_h5_file *file, ats_err *err)
{
    const ats_code rc = ats_h5_users_write(file, err);
    const hid_t id = file->id, access = file->access;
    file->id = file->access = 0;
    if (access > 0) H5Pclose(access);
    if (H5Fclose(id) < 0 && rc == ATS_OK)
        return ats_h5_error(err, ATS_E_IO, file, NULL,
                            "closing the file failed; is the disk full?");
    if (rc != ATS_OK) return rc;
    if (*file->unwritten > 0)
        return ats_h5_fail(err, ATS_E_IO, file, NULL,
                           "%d datasets could not be written out; is the disk full?",
                           *file->unwritten);
    return ATS_OK;
}

ats_code ats_h5_commit(ats_h5_file *file, ats_err *err)
{
    ats_code rc = ATS_OK;
    if (file->id > 0) ATS_TRY(ats_h5_shut(file, err));
    if (file->sealed) ATS_TRY(ats_h5_seal(file->temporary, err));
    ATS_TRY(sync_name(file, file->temporary, O_RDWR, err));
    if (rename(file->temporary, file->path) != 0) {
        rc = ats_h5_fail(err, ATS_E_IO, file, NULL, "%s cannot be renamed to it: %s",
                         file->temporary, strerror(errno));
        goto out;
    }
    free(file->temporary);
    file->temporary = NULL;
    rc = sync_folder(file, err);
out:
    ats_h5_close(file);
    return rc;
}

void ats_h5_close(ats_h5_file *file)
{
    if (file->id > 0) H5Fclose(file->id);
    if (file->access > 0) H5Pclose(file->access);
    if (file->temporary != NULL) unlink(file->temporary);
    free(file->temporary);
    free(file->path);
    free(file->unwritten);
    ats_h5_users_free(file->users);
    *file = (ats_h5_file){.id = 0};
}
