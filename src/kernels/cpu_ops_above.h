/* Keys above a threshold: counted, listed for the top lists, or the next one. Included by
 * cpu_ops_body.h alone, once per instruction set: a body, without an include guard. */

static void ops_count_above(int64_t keys, int64_t lanes, const float *z, const float *threshold,
                            float *count)
{
    for (int64_t j = 0; j < lanes; j += VL) {
        const vf limit = v_load(threshold + j);
        vi even = {0}, odd = {0};
        int64_t i = 0;
        for (; i + 2 <= keys; i += 2) {
            even = V_COUNT_GT(even, v_load(z + i * lanes + j), limit);
            odd = V_COUNT_GT(odd, v_load(z + (i + 1) * lanes + j), limit);
        }
        if (i < keys) even = V_COUNT_GT(even, v_load(z + i * lanes + j), limit);
        v_store(count + j, v_load(count + j) + __builtin_convertvector(even + odd, vf));
    }
}

static bool ops_any_above(int64_t lanes, const float *a, const float *b)
{
    for (int64_t j = 0; j < lanes; j += VL)
        if (V_ANY_GT(v_load(a + j), v_load(b + j))) return true;
    return false;
}

INLINE int64_t put_hits(uint32_t bits, int64_t key, int64_t lane, uint16_t *out, int64_t count)
{
    for (; bits != 0; bits &= bits - 1)
        out[count++] = (uint16_t)(key << 8 | (lane + __builtin_ctz(bits)));
    return count;
}

/* One vector of lanes, at z. */
INLINE int64_t above_lanes(int64_t keys, int64_t lanes, int64_t j, const float *z, const float *add,
                           vf limit, uint16_t *out, int64_t count)
{
    for (int64_t i = 0; i < keys; i++) {
        const vf x = v_load(z + i * lanes + j);
        count = put_hits(V_BITS_GT(add != NULL ? x + add[i] : x, limit), i, j, out, count);
    }
    return count;
}

static void ops_above(int64_t keys, int64_t lanes, const float *z, const float *add,
                      const float *const bound[2], const float *const threshold[2],
                      uint16_t *const out[2], int64_t n[2])
{
    n[0] = n[1] = 0;
    for (int64_t j = 0; j < lanes; j += VL) {
        const vf plain = v_load(threshold[0] + j), more = v_load(threshold[1] + j);
        const bool first = V_ANY_GT(v_load(bound[0] + j), plain);
        const bool second = V_ANY_GT(v_load(bound[1] + j), more);
        if (first && !second) n[0] = above_lanes(keys, lanes, j, z, NULL, plain, out[0], n[0]);
        if (second && !first) n[1] = above_lanes(keys, lanes, j, z, add, more, out[1], n[1]);
        for (int64_t i = 0; first && second && i < keys; i++) {
            const vf x = v_load(z + i * lanes + j);
            const uint32_t a = V_BITS_GT(x, plain), b = V_BITS_GT(x + add[i], more);
            if (__builtin_expect((a | b) == 0, 1)) continue;
            n[0] = put_hits(a, i, j, out[0], n[0]);
            n[1] = put_hits(b, i, j, out[1], n[1]);
        }
    }
}

static int64_t ops_next_above(int64_t start, int64_t keys, int64_t lanes, const float *z,
                              const float *add, const float *threshold)
{
    for (int64_t i = start; i < keys; i++) {
        const float more = add != NULL ? add[i] : 0.0f;
        for (int64_t j = 0; j < lanes; j += VL)
            if (V_ANY_GT(v_load(z + i * lanes + j) + more, v_load(threshold + j))) return i;
    }
    return keys;
}
