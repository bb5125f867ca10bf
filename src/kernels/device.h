/* The boundary between the program (C) and a GPU module that is opened at run time: plain structs
 * and one table of functions, no type of CUDA and nothing of this library behind it.
 *
 * A pass takes pieces of at most `leaf` keys, each seen through one view of the query rows, and
 * gives back what the cpu backend computes for them: logits and the state of the piece (state.h).
 * Ownership: everything pointed to stays with the caller and is used only during the call, but for
 * the problem, which must outlive the device. Calls on different slots may run at the same time. */
#ifndef ATS_KERNELS_DEVICE_H
#define ATS_KERNELS_DEVICE_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum {
    ATS_DEVICE_ABI = 2,
    ATS_DEVICE_SUMS = 7,
    ATS_DEVICE_TEXT = 1024,
    ATS_DEVICE_BEST = 64, /* longest list of the best keys */
    ATS_DEVICE_COUNTS = 8 /* thresholds that a pass counts against */
};

typedef enum ats_device_kind { ATS_DEVICE_FUSED, ATS_DEVICE_CUBLAS } ats_device_kind;

typedef enum ats_device_status {
    ATS_DEVICE_OK,
    ATS_DEVICE_ABSENT, /* no driver, no device, a device too old, a missing library */
    ATS_DEVICE_MEMORY, /* smaller chunks did not help */
    ATS_DEVICE_LOST    /* a call failed; the device's work is void */
} ats_device_status;

typedef struct ats_device_error {
    char text[ATS_DEVICE_TEXT]; /* the call that failed, its words, what to do */
} ats_device_error;

/* Numbers of ats_dtype. */
typedef enum ats_device_type { ATS_DEVICE_F32, ATS_DEVICE_F16, ATS_DEVICE_BF16 } ats_device_type;

/* lanes and width: rows and d_v rounded up to 16. Results and planes come in tiles of `tile` rows,
 * a multiple of 16; the last may have fewer, and lanes is what it has rounded up. */
typedef struct ats_device_problem {
    int64_t n_keys, d_qk, d_v, rows, lanes, width, leaf;
    int64_t tile, n_tiles;
    ats_device_type k_type, v_type;
    const void *k;           /* [n_keys, d_qk] */
    const void *v;           /* [n_keys, d_v] */
    const int64_t *position; /* [n_keys] */
    int64_t origin;          /* relative positions count from here */
    float softcap;           /* 0: none */
    const float *slope;      /* [lanes] or NULL */
    int64_t best;            /* entries of the lists that passes make; 0: they make none */
    const float *const
        *plane; /* [n_tiles] [n_keys, lanes of the tile] bias, -inf: illegal; or NULL */
} ats_device_problem;

/* Query rows as some pieces see them. A key is legal where its position (before any move) lies in
 * [low, high]. */
typedef struct ats_device_view {
    const float *q;            /* [rows, d_qk] */
    const float *q_at;         /* [lanes] relative positions, for slopes */
    const int64_t *low, *high; /* [lanes] */
    float scale, inverse_temperature;
} ats_device_view;

/* Rows of fp32 that are not keys of the problem. */
typedef struct ats_device_side {
    int64_t count;
    const float *k, *v;      /* [count, d_qk], [count, width]; bad rows of v and padding are 0 */
    const int64_t *position; /* [count] */
    const float *norm, *log_norm; /* [count] of v */
} ats_device_side;

/* State of a piece for the rows of a tile, as ats_cpu_state has it. */
typedef struct ats_device_state {
    float *m, *mc;              /* [lanes] */
    double *l, *e, *s2, *a, *n; /* [lanes] */
    float *o;                   /* [rows, width] */
} ats_device_state;

typedef struct ats_device_piece {
    int64_t first, keys; /* rows of the problem's keys, or of the side */
    int64_t at;          /* key whose place (position, plane) the first row takes; -1: its own */
    int64_t view;
    int side;
    float *const *z;               /* [n_tiles] [keys, lanes of the tile] or NULL: not wanted */
    const ats_device_state *state; /* [n_tiles] or NULL: not wanted */
} ats_device_piece;

/* Lists of the best keys of every row, over the problem's keys that the pass takes, in parts: in
 * each larger scores first, of equal ones the earlier key. Together they hold the `best` best of
 * all. */
typedef struct ats_device_best {
    void *ctx;
    /* One part of a row's list by logit (payload 0) or by logit + log_norm, `count` entries at
     * most: key first + place[i stride] with logit z[i stride]; place < 0: it ends before. */
    void (*offer)(void *ctx, int payload, int64_t row, int64_t count, int64_t stride,
                  const float *z, const int32_t *place, int64_t first);
} ats_device_best;

/* How many keys of the pass have logits above a row's thresholds. */
typedef struct ats_device_counts {
    int64_t n;          /* at most ATS_DEVICE_COUNTS */
    const float *above; /* [n, lanes] */
    int64_t *count;     /* [n, lanes] added to */
} ats_device_counts;

/* With lists or counts, all pieces are keys of the problem that follow each other without a gap. */
typedef struct ats_device_pass {
    int64_t n_views, n_pieces;
    const ats_device_view *views;
    const ats_device_piece *pieces; /* pieces of keys ascend by `first` */
    ats_device_side side;
    const ats_device_best *best;     /* or NULL; needs the problem's `best` */
    const ats_device_counts *counts; /* or NULL */
} ats_device_pass;

typedef struct ats_device ats_device;

typedef struct ats_device_api {
    int abi;
    /* ATS_DEVICE_OK and what it is (device, driver, libraries), or why not. */
    ats_device_status (*probe)(ats_device_kind kind, char *detail, int64_t size,
                               ats_device_error *error);
    /* Largest widths of the kind's kernels. */
    void (*limits)(ats_device_kind kind, int64_t *d_qk, int64_t *d_v);
    /* Bytes of device memory that would hold everything. */
    int64_t (*bytes)(ats_device_kind kind, const ats_device_problem *problem, int slots);
    /* Copies what fits; norms of the values: norm, log_norm [n_keys], bad [n_keys] 1: not finite
     * (then norm 0, log_norm -inf, and the row counts as 0). */
    ats_device_status (*open)(ats_device_kind kind, const ats_device_problem *problem, int slots,
                              float *norm, float *log_norm, uint8_t *bad, ats_device **out,
                              ats_device_error *error);
    ats_device_status (*pass)(ats_device *device, int slot, const ats_device_pass *pass,
                              ats_device_error *error);
    /* Seconds of the kernels of a pass over pieces of keys, best of `repeats`; nothing comes back.
     * Without z, states alone; without states' o as well (want_values 0), sums alone. */
    ats_device_status (*measure)(ats_device *device, const ats_device_pass *pass, int repeats,
                                 int want_values, double *seconds, ats_device_error *error);
    /* Why chunks are smaller than planned, or "". */
    const char *(*notice)(const ats_device *device);
    void (*close)(ats_device *device);
} ats_device_api;

/* What a module exports, by this name. */
#define ATS_DEVICE_ENTRY "attnstress_device_api"
typedef const ats_device_api *(*ats_device_entry)(void);

#ifdef __cplusplus
}
#endif

#endif
