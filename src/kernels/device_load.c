#include "kernels/device_load.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define MODULE "attnstress_cuda.so"

static pthread_once_t once = PTHREAD_ONCE_INIT;
static const ats_device_api *loaded;
static ats_err reason;

/* The folder of the program, or "". */
static void program_folder(char *out, size_t size)
{
    const ssize_t length = readlink("/proc/self/exe", out, size - 1);
    out[length > 0 ? length : 0] = '\0';
    char *slash = strrchr(out, '/');
    if (slash != NULL) *slash = '\0';
}

/* True when the file is there, whether it opens or not. */
static bool try_open(const char *path, void **out)
{
    if (access(path, R_OK) != 0) return false;
    *out = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    return true;
}

static void *open_module(char *place, size_t size)
{
    const char *named = getenv("ATTNSTRESS_CUDA_MODULE");
    char folder[3072];
    void *module = NULL;
    if (named != NULL && *named != '\0') {
        snprintf(place, size, "%s", named);
        return dlopen(named, RTLD_NOW | RTLD_LOCAL);
    }
    program_folder(folder, sizeof folder);
    snprintf(place, size, "%s/" MODULE, folder);
    if (try_open(place, &module)) return module;
    snprintf(place, size, "%s/../lib/attnstress/" MODULE, folder);
    if (try_open(place, &module)) return module;
    snprintf(place, size, MODULE);
    return dlopen(place, RTLD_NOW | RTLD_LOCAL);
}

static void load(void)
{
    char place[4096];
    void *module = open_module(place, sizeof place);
    if (module == NULL) {
        const char *why = dlerror();
        ats_fail(&reason, ATS_E_DEVICE,
                 "the GPU module cannot be opened: %s; build it with the CUDA compiler "
                 "(docs/gpu-performance.md) "
                 "or use --backend cpu",
                 why != NULL ? why : place);
        return;
    }
    ats_device_entry entry = NULL;
    void *symbol = dlsym(module, ATS_DEVICE_ENTRY);
    memcpy(&entry, &symbol, sizeof entry); /* ISO C has no cast from object to function */
    const ats_device_api *api = entry != NULL ? entry() : NULL;
    if (api == NULL || api->abi != ATS_DEVICE_ABI) {
        ats_fail(&reason, ATS_E_DEVICE,
                 "%s is not the GPU module of this program (interface %d, wanted %d); build both "
                 "together, or use --backend cpu",
                 place, api != NULL ? api->abi : 0, ATS_DEVICE_ABI);
        return;
    }
    loaded = api;
}

ats_code ats_device_load(const ats_device_api **out, ats_err *err)
{
    pthread_once(&once, load);
    if (loaded == NULL) {
        if (err != NULL) *err = reason;
        return reason.code;
    }
    *out = loaded;
    return ATS_OK;
}
