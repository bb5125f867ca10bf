#include "kernels/cuda/queue.h"

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <algorithm>
#include <cmath>
#include <cstring>

ats_device::ats_device(ats_device_kind k, const ats_device_problem &p, int n_slots)
    : kind(k), problem(p), k_pitch(static_cast<int>((p.d_qk + 15) / 16 * 16)),
      v_pitch(static_cast<int>(p.width)), plan(), shared_limit(0), slots(n_slots)
{
}

namespace ats {

static void place_keys(const ats_device &d, layout *l, key_rows *keys, int64_t count)
{
    const ats_device_problem &p = d.problem;
    l->take(&keys->k, count * d.k_pitch * type_size(p.k_type));
    l->take(&keys->v, count * d.v_pitch * type_size(p.v_type));
    l->take(&keys->position, count);
    l->take(&keys->norm, count);
    l->take(&keys->log_norm, count);
    l->take(&keys->bad, count);
    l->take(&keys->plane, p.plane != nullptr ? count * p.lanes : 0);
}

static void place_input(const ats_device &d, layout *l, group_input *in)
{
    const int64_t lanes = d.problem.lanes, side = d.plan.side;
    l->take(&in->pieces, d.plan.pieces);
    l->take(&in->views, MAX_VIEWS);
    l->take(&in->q, MAX_VIEWS * lanes * d.k_pitch * 4);
    l->take(&in->row_scale, MAX_VIEWS * lanes);
    l->take(&in->q_at, MAX_VIEWS * lanes);
    l->take(&in->low, MAX_VIEWS * lanes);
    l->take(&in->high, MAX_VIEWS * lanes);
    l->take(&in->side_k, side * d.k_pitch);
    l->take(&in->side_v, side * d.v_pitch);
    l->take(&in->side_norm, side);
    l->take(&in->side_log_norm, side);
    l->take(&in->side_plane, d.problem.plane != nullptr ? side * lanes : 0);
    l->take(&in->side_position, side);
    l->take(&in->above, ATS_DEVICE_COUNTS * lanes);
    const int64_t batched = d.kind == ATS_DEVICE_CUBLAS ? d.plan.pieces : 0;
    l->take(&in->weights, 2 * batched); // both halves
    l->take(&in->value_rows, batched);
    l->take(&in->outputs, batched);
}

static void place_output(const ats_device &d, layout *l, group_output *out)
{
    const ats_device_problem &p = d.problem;
    l->take(&out->z, d.plan.pieces * p.leaf * p.lanes);
    l->take(&out->sums, d.plan.pieces * ATS_DEVICE_SUMS * p.lanes);
    l->take(&out->o, d.plan.pieces * p.rows * d.v_pitch);
    const int64_t parts = scan_parts(d.plan.pieces);
    l->take(&out->list_z, 2 * parts * p.best * p.lanes);
    l->take(&out->list_place, 2 * parts * p.best * p.lanes);
    l->take(&out->counts, parts * ATS_DEVICE_COUNTS * p.lanes);
}

void place_all(ats_device *d, void *device_block, void *pinned_block, size_t *device_bytes,
               size_t *pinned_bytes)
{
    layout device(device_block), pinned(pinned_block);
    device.take(&d->slope, d->problem.slope != nullptr ? d->problem.lanes : 0);
    place_keys(*d, &device, &d->keys, d->plan.resident ? d->problem.n_keys : 0);
    for (slot &s : d->slots)
        for (half &h : s.halves) {
            place_input(*d, &device, &h.in);
            place_input(*d, &pinned, &h.host_in);
            place_output(*d, &device, &h.out);
            place_output(*d, &pinned, &h.host_out);
            place_keys(*d, &device, &h.window, d->plan.resident ? 0 : d->plan.window);
            // Resident keys all come through the first slot.
            const bool copies = !d->plan.resident || &s == &d->slots[0];
            place_keys(*d, &pinned, &h.host_window, copies ? d->plan.window : 0);
            device.take(&h.weights, d->kind == ATS_DEVICE_CUBLAS
                                        ? d->plan.pieces * d->problem.leaf * d->problem.lanes * 4
                                        : 0);
        }
    *device_bytes = device.used();
    *pinned_bytes = pinned.used();
}

chunk_plan plan_chunks(const ats_device &d, int64_t group_bytes, bool resident)
{
    const ats_device_problem &p = d.problem;
    const int64_t piece = 4 * (p.leaf * p.lanes + ATS_DEVICE_SUMS * p.lanes + p.rows * d.v_pitch);
    const int64_t row = d.k_pitch * type_size(p.k_type) + d.v_pitch * type_size(p.v_type) + 17 +
                        (p.plane != nullptr ? 4 * p.lanes : 0);
    const int64_t all = std::max<int64_t>(1, p.n_keys / p.leaf + 1);
    chunk_plan plan = {};
    plan.resident = resident;
    plan.pieces = std::min(std::max<int64_t>(1, group_bytes / piece), std::min<int64_t>(all, 4096));
    plan.window = std::max(p.leaf, std::min(p.n_keys, group_bytes / row));
    plan.side = std::max(p.leaf, std::min<int64_t>(plan.pieces * p.leaf, 4096));
    return plan;
}

// Rows of `width` elements side by side become rows of `pitch`, the rest 0.
static void copy_rows(void *to, const void *from, int64_t rows, int64_t width, int64_t pitch,
                      int64_t size)
{
    if (width == pitch) {
        memcpy(to, from, static_cast<size_t>(rows * width * size));
        return;
    }
    for (int64_t i = 0; i < rows; i++) {
        unsigned char *row = static_cast<unsigned char *>(to) + i * pitch * size;
        memcpy(row, static_cast<const unsigned char *>(from) + i * width * size,
               static_cast<size_t>(width * size));
        memset(row + width * size, 0, static_cast<size_t>((pitch - width) * size));
    }
}

template <class T>
static cudaError_t upload(T *device, const T *host, int64_t count, cudaStream_t stream)
{
    if (count == 0) return cudaSuccess;
    return cudaMemcpyAsync(device, host, static_cast<size_t>(count) * sizeof(T),
                           cudaMemcpyHostToDevice, stream);
}

// Keys [first, first + count) of the tiles' planes, tiles side by side.
static void copy_plane(const ats_device_problem &p, int64_t first, int64_t count, float *to)
{
    for (int64_t t = 0; t < p.n_tiles; t++) {
        const int64_t lanes = tile_lanes(p, t);
        for (int64_t i = 0; i < count; i++)
            memcpy(to + i * p.lanes + t * p.tile, p.plane[t] + (first + i) * lanes,
                   static_cast<size_t>(lanes) * sizeof *to);
    }
}

ats_device_status load_keys(ats_device *d, half *through, const key_rows &to, int64_t first,
                            int64_t count, ats_device_error *error)
{
    const ats_device_problem &p = d->problem;
    const key_rows &host = through->host_window;
    const int64_t k_size = type_size(p.k_type), v_size = type_size(p.v_type), at = first - to.first;
    copy_rows(host.k, static_cast<const unsigned char *>(p.k) + first * p.d_qk * k_size, count,
              p.d_qk, d->k_pitch, k_size);
    copy_rows(host.v, static_cast<const unsigned char *>(p.v) + first * p.d_v * v_size, count,
              p.d_v, d->v_pitch, v_size);
    memcpy(host.position, p.position + first, static_cast<size_t>(count) * sizeof *p.position);
    ATS_CUDA(upload(to.k + at * d->k_pitch * k_size, host.k, count * d->k_pitch * k_size,
                    through->stream));
    unsigned char *v = to.v + at * d->v_pitch * v_size;
    ATS_CUDA(upload(v, host.v, count * d->v_pitch * v_size, through->stream));
    ATS_CUDA(upload(to.position + at, host.position, count, through->stream));
    if (p.plane != nullptr) {
        copy_plane(p, first, count, host.plane);
        ATS_CUDA(upload(to.plane + at * p.lanes, host.plane, count * p.lanes, through->stream));
    }
    ATS_CUDA(launch_norms(p.v_type, v, count, d->v_pitch, to.norm + at, to.log_norm + at,
                          to.bad + at, through->stream));
    return ATS_DEVICE_OK;
}

// 16-bit halves of a row times a power of two, hi + lo equal to it but for the last bits of fp32;
// returns that power's inverse. binary16 needs rows of ordinary size.
template <class T, T (*NARROW)(float), float (*WIDEN)(T)>
static float split_row(const float *row, int64_t d, bool scaled, T *hi, T *lo, bool *exact)
{
    float largest = 0;
    for (int64_t i = 0; i < d; i++) largest = std::max(largest, std::fabs(row[i]));
    int exponent = 0;
    if (scaled && std::isfinite(largest) && largest > 0 && (largest < 0.25f || largest > 32768.0f))
        std::frexp(largest, &exponent);
    for (int64_t i = 0; i < d; i++) {
        const float x = std::ldexp(row[i], -exponent);
        hi[i] = NARROW(x);
        lo[i] = NARROW(x - WIDEN(hi[i]));
        *exact &= WIDEN(lo[i]) == 0;
    }
    return std::ldexp(1.0f, exponent);
}

static __half narrow_half(float x) { return __float2half_rn(x); }
static float widen_half(__half x) { return __half2float(x); }
static __nv_bfloat16 narrow_bf16(float x) { return __float2bfloat16_rn(x); }
static float widen_bf16(__nv_bfloat16 x) { return __bfloat162float(x); }

static void add_view(const ats_device *d, half *h, const ats_device_view &view, ats_device_type type)
{
    const ats_device_problem &p = d->problem;
    const int64_t index = h->n_views++, lanes = p.lanes, cells = lanes * d->k_pitch;
    unsigned char *q = h->host_in.q + index * cells * 4, *device_q = h->in.q + index * cells * 4;
    view_args *args = &h->host_in.views[index];
    memset(q, 0, static_cast<size_t>(cells) * 4);
    *args = {};
    bool exact = true;
    for (int64_t row = 0; row < lanes; row++) {
        const int64_t at = index * lanes + row;
        float factor = 1;
        if (row < p.rows) {
            const float *from = view.q + row * p.d_qk;
            const int64_t cell = row * d->k_pitch;
            if (type == ATS_DEVICE_F32)
                memcpy(reinterpret_cast<float *>(q) + cell, from,
                       static_cast<size_t>(p.d_qk) * sizeof *from);
            else if (type == ATS_DEVICE_F16)
                factor = split_row<__half, narrow_half, widen_half>(
                    from, p.d_qk, true, reinterpret_cast<__half *>(q) + cell,
                    reinterpret_cast<__half *>(q) + cells + cell, &exact);
            else
                factor = split_row<__nv_bfloat16, narrow_bf16, widen_bf16>(
                    from, p.d_qk, false, reinterpret_cast<__nv_bfloat16 *>(q) + cell,
                    reinterpret_cast<__nv_bfloat16 *>(q) + cells + cell, &exact);
        }
        h->host_in.row_scale[at] = view.scale * factor;
        h->host_in.q_at[at] = view.q_at[row];
        h->host_in.low[at] = view.low[row];
        h->host_in.high[at] = view.high[row];
    }
    args->q = reinterpret_cast<const float *>(device_q);
    args->q_hi = device_q;
    args->q_lo = type == ATS_DEVICE_F32 || exact ? nullptr : device_q + cells * 2;
    args->row_scale = h->in.row_scale + index * lanes;
    args->q_at = h->in.q_at + index * lanes;
    args->low = h->in.low + index * lanes;
    args->high = h->in.high + index * lanes;
    args->inverse_temperature = view.inverse_temperature;
    h->exact &= args->q_lo == nullptr;
}

// fp32 arithmetic where the matrix units' types do not fit; 16-bit queries otherwise.
static ats_device_type query_type(const ats_device *d, bool side)
{
    const ats_device_problem &p = d->problem;
    if (side || (d->kind == ATS_DEVICE_FUSED && p.k_type != p.v_type)) return ATS_DEVICE_F32;
    return p.k_type;
}

// The view's index in the group; -1: no room.
static int64_t find_view(const ats_device *d, half *h, const ats_device_pass *pass,
                         const ats_device_piece &piece)
{
    for (int64_t i = 0; i < h->n_views; i++)
        if (h->view_index[i] == piece.view) return i;
    if (h->n_views == MAX_VIEWS) return -1;
    h->view_index[h->n_views] = piece.view;
    add_view(d, h, pass->views[piece.view], query_type(d, piece.side != 0));
    return h->n_views - 1;
}

static void add_side_rows(const ats_device *d, half *h, const ats_device_pass *pass,
                          const ats_device_piece &piece, piece_args *args)
{
    const ats_device_problem &p = d->problem;
    const ats_device_side &side = pass->side;
    const group_input &host = h->host_in;
    const int64_t to = h->side, from = piece.first;
    copy_rows(host.side_k + to * d->k_pitch, side.k + from * p.d_qk, piece.keys, p.d_qk, d->k_pitch,
              sizeof(float));
    memcpy(host.side_v + to * d->v_pitch, side.v + from * d->v_pitch,
           static_cast<size_t>(piece.keys * d->v_pitch) * sizeof(float));
    const int64_t *position = piece.at >= 0 ? p.position + piece.at : side.position + from;
    memcpy(host.side_position + to, position, static_cast<size_t>(piece.keys) * sizeof *position);
    memcpy(host.side_norm + to, side.norm + from, static_cast<size_t>(piece.keys) * sizeof(float));
    memcpy(host.side_log_norm + to, side.log_norm + from,
           static_cast<size_t>(piece.keys) * sizeof(float));
    if (p.plane != nullptr && piece.at >= 0) {
        copy_plane(p, piece.at, piece.keys, host.side_plane + to * p.lanes);
        args->plane = h->in.side_plane + to * p.lanes;
    }
    args->k = h->in.side_k + to * d->k_pitch;
    args->v = h->in.side_v + to * d->v_pitch;
    args->norm = h->in.side_norm + to;
    args->log_norm = h->in.side_log_norm + to;
    args->position = h->in.side_position + to;
    h->side += piece.keys;
}

static void point_at_keys(const ats_device *d, const key_rows &keys, const ats_device_piece &piece,
                          piece_args *args)
{
    const ats_device_problem &p = d->problem;
    const int64_t at = piece.first - keys.first;
    args->k = keys.k + at * d->k_pitch * type_size(p.k_type);
    args->v = keys.v + at * d->v_pitch * type_size(p.v_type);
    args->norm = keys.norm + at;
    args->log_norm = keys.log_norm + at;
    args->position = keys.position + at;
    if (p.plane != nullptr) args->plane = keys.plane + at * p.lanes;
}

static void add_piece(const ats_device *d, half *h, const ats_device_pass *pass,
                      const ats_device_piece &piece, int64_t view)
{
    const ats_device_problem &p = d->problem;
    const bool side = piece.side != 0;
    piece_args args = {};
    const int64_t *position = piece.at >= 0 ? p.position + piece.at
                              : side        ? pass->side.position + piece.first
                                            : p.position + piece.first;
    if (side)
        add_side_rows(d, h, pass, piece, &args);
    else
        point_at_keys(d, d->plan.resident ? d->keys : h->window, piece, &args);
    args.first = *std::min_element(position, position + piece.keys);
    args.last = *std::max_element(position, position + piece.keys);
    const bool scanned = pass->best != nullptr || pass->counts != nullptr;
    const bool keep_z = piece.z != nullptr || scanned || d->kind == ATS_DEVICE_CUBLAS;
    args.z = keep_z ? h->out.z + h->keys * p.lanes : nullptr;
    args.sums = h->out.sums + h->count * ATS_DEVICE_SUMS * p.lanes;
    const bool keep_o = h->measured ? !h->no_values : piece.state != nullptr;
    args.o = keep_o ? h->out.o + h->count * p.rows * d->v_pitch : nullptr;
    args.keys = static_cast<int32_t>(piece.keys);
    args.view = static_cast<int32_t>(view);
    h->host_in.pieces[h->count++] = args;
    h->keys += piece.keys;
    h->want_o |= piece.state != nullptr;
}

int64_t fill_group(const ats_device *d, half *h, const ats_device_pass *pass, int64_t from)
{
    const bool side = pass->pieces[from].side != 0;
    h->pass = pass;
    h->pieces = pass->pieces + from;
    h->count = h->keys = h->side = h->n_views = 0;
    h->want_o = false;
    h->exact = true;
    h->window.first = pass->pieces[from].first;
    for (int64_t i = from; i < pass->n_pieces && h->count < d->plan.pieces; i++) {
        const ats_device_piece &piece = pass->pieces[i];
        if ((piece.side != 0) != side) break;
        if (side && h->side + piece.keys > d->plan.side) break;
        const int64_t end = piece.first + piece.keys - h->window.first;
        if (!side && !d->plan.resident && (end > d->plan.window || piece.first < h->window.first))
            break;
        const int64_t view = find_view(d, h, pass, piece);
        if (view < 0) break;
        add_piece(d, h, pass, piece, view);
        if (!side) h->window.count = end;
    }
    return h->count;
}

ats_device_status upload_group(half *h, const ats_device *d, bool side, ats_device_error *error)
{
    const int64_t lanes = d->problem.lanes, rows = h->n_views * lanes;
    const group_input &to = h->in, &from = h->host_in;
    ATS_CUDA(upload(to.pieces, from.pieces, h->count, h->stream));
    ATS_CUDA(upload(to.views, from.views, h->n_views, h->stream));
    ATS_CUDA(upload(to.q, from.q, rows * d->k_pitch * 4, h->stream));
    ATS_CUDA(upload(to.row_scale, from.row_scale, rows, h->stream));
    ATS_CUDA(upload(to.q_at, from.q_at, rows, h->stream));
    ATS_CUDA(upload(to.low, from.low, rows, h->stream));
    ATS_CUDA(upload(to.high, from.high, rows, h->stream));
    if (!side) return ATS_DEVICE_OK;
    ATS_CUDA(upload(to.side_k, from.side_k, h->side * d->k_pitch, h->stream));
    ATS_CUDA(upload(to.side_v, from.side_v, h->side * d->v_pitch, h->stream));
    ATS_CUDA(upload(to.side_norm, from.side_norm, h->side, h->stream));
    ATS_CUDA(upload(to.side_log_norm, from.side_log_norm, h->side, h->stream));
    ATS_CUDA(upload(to.side_position, from.side_position, h->side, h->stream));
    if (d->problem.plane != nullptr)
        ATS_CUDA(upload(to.side_plane, from.side_plane, h->side * lanes, h->stream));
    return ATS_DEVICE_OK;
}

// Maps of the queries, keys and values that the half's pieces point into.
static bool make_maps(const ats_device *d, const half &h, tma_maps *maps)
{
    const ats_device_problem &p = d->problem;
    const key_rows &keys = d->plan.resident ? d->keys : h.window;
    maps->q_base = h.in.q;
    maps->k_base = keys.k;
    maps->v_base = keys.v;
    return make_tensor_map(&maps->q, p.k_type, h.in.q, 2 * h.n_views * p.lanes, d->k_pitch) &&
           make_tensor_map(&maps->k, p.k_type, keys.k, keys.count, d->k_pitch) &&
           make_tensor_map(&maps->v, p.v_type, keys.v, keys.count, d->v_pitch);
}

static ats_device_status fused_group(ats_device *d, half *h, const pass_args &args, bool side,
                                     ats_device_error *error)
{
    const int pieces = static_cast<int>(h->count);
    if (query_type(d, side) == ATS_DEVICE_F32) {
        ATS_CUDA(launch_simt(args, pieces, h->stream));
        return ATS_DEVICE_OK;
    }
    const mma_shape shape = {d->k_pitch, d->v_pitch, h->exact ? 1 : 2};
    const bool groups_pay = args.lanes >= d->least_lanes;
    if (groups_pay && d->rung == rung::tma) {
        const tma_shape block = tma_block(shape, args.lanes, d->shared_limit);
        tma_maps maps;
        if (block.groups > 0 && make_maps(d, *h, &maps)) {
            ATS_CUDA(launch_tma(args, shape, block, maps, pieces, d->processors, h->stream));
            return ATS_DEVICE_OK;
        }
    }
    if (groups_pay && d->rung != rung::mma) {
        const int groups = wgmma_groups(shape, args.lanes, d->shared_limit);
        if (groups > 0) {
            ATS_CUDA(launch_wgmma(args, shape, pieces, groups, h->stream));
            return ATS_DEVICE_OK;
        }
    }
    const int warps = mma_warps(shape, args.lanes, d->shared_limit);
    if (warps == 0)
        return refuse(error, ATS_DEVICE_ABSENT,
                      "heads of %lld and %lld elements need more shared memory than the device "
                      "gives a block (%lld bytes); use --backend cpu",
                      static_cast<long long>(d->problem.d_qk),
                      static_cast<long long>(d->problem.d_v),
                      static_cast<long long>(d->shared_limit));
    ATS_CUDA(launch_mma(args, shape, pieces, warps, h->stream));
    return ATS_DEVICE_OK;
}

ats_device_status compute_group(ats_device *d, half *h, const pass_args &args, bool side,
                                ats_device_error *error)
{
    if (d->kind == ATS_DEVICE_FUSED) return fused_group(d, h, args, side, error);
    return unfused_group(d, h, args, side, error);
}

} // namespace ats
