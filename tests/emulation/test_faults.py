"""The suite must see faults planted in copies of the kernels' text: a check that cannot fail is none.

usage: test_faults.py KERNELS OUT TEST [-k WORDS] CXX FLAGS... -- LINK...
For every fault (with -k: whose name holds WORDS) a module is built from the changed text, and `TEST
cuda kernels` (for the rungs of warpgroups `TEST cuda warpgroups`, for lists `TEST cuda lists`) must fail under at least one schedule
of the emulator. The unchanged text must pass.
"""
import concurrent.futures
import os
import pathlib
import subprocess
import sys

ORDERS = ["forward", "greedy", "greedy-shuffled", "reverse", "shuffled"]
FILES = ["pass_mma.cu", "pass_wgmma.cu", "pass_tma.cu", "pass_simt.cu", "scan.cu", "unfused.cu"]
MMA, WGMMA, TMA, SIMT, SCAN = FILES[:5]
# what rungs share: the files that include it
ROWS, GROUPS = "pass_rows.cuh", "pass_groups.cuh"
INCLUDED = {ROWS: (MMA, WGMMA, TMA), GROUPS: (WGMMA, TMA)}
REFUSED = "tma: a tile of keys too far"
RUNGS = {WGMMA: "wgmma", TMA: "tma", GROUPS: "tma"}
HOPPER = {"CUEMU_CAPABILITY": "90", "CUEMU_SHARED": "232448"}
# name: file, text that occurs once, what stands there instead
FAULTS = {
    "no barrier before a stage is used again": (MMA,
        "                                         args.v_pitch);\n        }\n        __syncthreads();\n",
        "                                         args.v_pitch);\n        }\n"),
    "no barrier after the wait": (MMA,
        "            ptx::cp_wait<0>();\n        }\n        __syncthreads();\n",
        "            ptx::cp_wait<0>();\n        }\n"),
    "the last tile is not waited for": (MMA, "ptx::cp_wait<0>();", "ptx::cp_wait<1>();"),
    "one key too many in a ragged tile": (ROWS,
        "const bool inside = key < piece.keys;", "const bool inside = key <= piece.keys;"),
    "one key too few in a ragged tile": (ROWS,
        "const bool inside = key < piece.keys;", "const bool inside = key + 1 < piece.keys;"),
    "sums are raised after their factor": (ROWS,
        "    s.e = f * (s.e + drop * s.l);\n    s.l *= f;\n",
        "    s.l *= f;\n    s.e = f * (s.e + drop * s.l);\n"),
    "factors of the two rows change places": (ROWS, "o[n][0] *= f[0];", "o[n][0] *= f[1];"),
    "the low half of a weight is lost": (MMA,
        "            ptx::mma<T>(o[n], lo, b[0], b[1]);\n", ""),
    "the low half of a query is lost": (MMA,
        "        if (view.q_lo != nullptr)\n            multiply_keys", "        if (false)\n            multiply_keys"),
    "legality is not looked at": (ROWS, "key, row, rows.masked);", "key, row, false);"),
    "values are not transposed": (MMA, "ptx::ldmatrix_x4_trans(b,", "ptx::ldmatrix_x4(b,"),
    "one step of a sum over the quad": (ROWS,
        "    x += __shfl_xor_sync(0xffffffffu, x, 1);\n    return x + __shfl_xor_sync(0xffffffffu, x, 2);",
        "    return x + __shfl_xor_sync(0xffffffffu, x, 2);"),
    "rows: bounds of one row of two": (ROWS,
        "sees_all(rows.row[0], piece) && sees_all(rows.row[1], piece));", "sees_all(rows.row[0], piece));"),
    "rows: half of them are asked whether they see": (ROWS, "i < block_rows; i += 32)", "i < block_rows / 2; i += 32)"),
    "rows: square sums are raised once": (ROWS, "s.s2 *= f * f;", "s.s2 *= f;"),
    "warpgroups: no barrier before a stage is used again": (WGMMA,
        "v_tiles + tile % STAGES * v_bytes);\n        __syncthreads();\n", "v_tiles + tile % STAGES * v_bytes);\n"),
    "warpgroups: copies are not fenced": (WGMMA, "        ptx::fence_proxy_async();\n", ""),
    "warpgroups: logits are not waited for": (GROUPS,
        "    ptx::wgmma_commit();\n    ptx::wgmma_wait(s);\n", "    ptx::wgmma_commit();\n"),
    "warpgroups: registers are not fenced": (GROUPS, "    raise_values<DV>(o, f);\n    ptx::wgmma_fence();\n",
        "    raise_values<DV>(o, f);\n"),
    "warpgroups: the swizzle of another row": (WGMMA, "((part % 8) ^ (row % 8)) * 16", "((part % 8) ^ (row % 4)) * 16"),
    "warpgroups: columns past the head are read": (WGMMA, " && part * 8 < width;", ";"),
    "warpgroups: the rows of the first group for all": (WGMMA, "q_hi + group", "q_hi"),
    "warpgroups: sums are not cleared": (GROUPS, "k, width, false);", "k, width, true);"),
    "warpgroups: values of another step": (GROUPS, "(column * KEYS + step * 16)", "(column * KEYS + step * 8)"),
    "tma: keys are not waited for": (TMA,
        "            ptx::barrier_wait(&at.bars->k_full[k.stage], k.parity);\n", ""),
    "tma: values of another phase": (TMA, "v_full[v.stage], v.parity)", "v_full[v.stage], v.parity ^ 1)"),
    "tma: keys are replaced while in use": (TMA,
        "            ptx::barrier_wait(&at.bars->k_empty[k.stage], k.parity ^ 1);\n", ""),
    "tma: values are replaced while in use": (TMA,
        "            ptx::barrier_wait(&at.bars->v_empty[v.stage], v.parity ^ 1);\n", ""),
    "tma: rows are replaced while in use": (TMA,
        "            ptx::barrier_wait(&at.bars->q_empty, q.parity ^ 1);\n", ""),
    "tma: fewer bytes announced than come": (TMA, "barrier_expect(full, at.k_bytes)", "barrier_expect(full, at.k_bytes / 2)"),
    "tma: more bytes announced than come": (TMA, "barrier_expect(full, at.v_bytes)", "barrier_expect(full, at.v_bytes + 16)"),
    "tma: barriers are not fenced": (TMA, "        ptx::fence_barriers();\n", ""),
    "tma: barriers are used before they are made": (TMA, "    }\n    __syncthreads();\n", "    }\n"),
    "tma: a stage is free one warp too early": (TMA, "k_empty[stage], warps)", "k_empty[stage], warps - 1)"),
    "tma: the parity never turns": (TMA, "        parity ^= 1;\n", ""),
    "tma: the low half of the rows is the high one": (TMA, "row_of(tma.q, view.q_lo", "row_of(tma.q, view.q_hi"),
    "tma: a tile of keys too far": (TMA, "k_map, k_row + key,", "k_map, k_row + key + 1,"),
    "tma: keys of another piece's first row": (TMA, "row_of(tma.k, piece.k", "row_of(tma.k, args.pieces->k"),
    "tma: an unseen piece for the first warp alone": (TMA,
        "store_nothing(args, piece, warp_row, ROWS", "store_nothing(args, piece, at.block_row, ROWS"),
    "tma: the second group multiplies the first one's rows": (TMA,
        "const int group = warp / 4 * GROUP_ROWS * ROW_BYTES;", "const int group = 0;"),
    "tma: values at the pitch of keys": (TMA, "row_of(tma.v, piece.v, args.v_pitch)", "row_of(tma.v, piece.v, args.k_pitch)"),
    "tma: the rows of the view before": (TMA, "if (view_of != view_index)", "if (view_index < 0)"),
    "simt: no barrier before a tile is replaced": (SIMT,
        "                    acc[r][j] += q * shared.tile[c * TILE_STRIDE + tx + 16 * j];\n            }\n        __syncthreads();\n",
        "                    acc[r][j] += q * shared.tile[c * TILE_STRIDE + tx + 16 * j];\n            }\n"),
    "simt: no barrier before a tile is used": (SIMT,
        "                    : 0.0f;\n        }\n        __syncthreads();\n        for (int c = 0; c < depth; c++)\n#pragma unroll\n            for (int r = 0; r < ROW_STEPS; r++) {\n                const float q",
        "                    : 0.0f;\n        }\n        for (int c = 0; c < depth; c++)\n#pragma unroll\n            for (int r = 0; r < ROW_STEPS; r++) {\n                const float q"),
    "simt: the last key of a piece": (SIMT,
        "if (key >= piece.keys) continue;", "if (key + 1 >= piece.keys) continue;"),
    "lists: of equal scores the later key": (SCAN, "other && place < other_place);", "other && place > other_place);"),
    "lists: order of keys between warps is not looked at": (SCAN,
        "return score > other || (score == other && place < other_place);", "return score > other;"),
    "lists: no barrier before they are joined": (SCAN,
        "lists[payload].count;\n    __syncthreads();\n", "lists[payload].count;\n"),
    "lists: one key too few in a piece": (SCAN, "key + i < piece.keys ?", "key + i + 1 < piece.keys ?"),
    "lists: the last entry is not replaced": (SCAN, "list.count++ : list.limit - 1;", "list.count++ : list.limit;"),
    "lists: pieces are skipped by weight alone": (SCAN,
        "const bool wanted = row < args.rows && (piece.sums[row] > heavy.threshold ||\n                                            piece.sums[lanes + row] > payload.threshold);",
        "const bool wanted = row < args.rows && piece.sums[row] > heavy.threshold;"),
    "lists: payload by weight": (SCAN, "insert(payload, score,", "insert(payload, z[i],"),
    "lists: one warp's is forgotten": (SCAN, "for (int other = 0; other < warps; other++)", "for (int other = 0; other + 1 < warps; other++)"),
    "lists: a full list joins no more": (SCAN,
        "!before(s, place[i * WARP], list.score[last], list.place[last]))\n            return;", "true)\n            return;"),
    "lists: places count from the piece": (SCAN, "insert(heavy, z[i], first + key + i)", "insert(heavy, z[i], key + i)"),
    "lists: a threshold that never rises": (SCAN,
        "if (list.count == list.limit) list.threshold = list.score[(list.limit - 1) * WARP];",
        "list.threshold = list.score[(list.count - 1) * WARP];"),
    "counts: equal logits too": (SCAN, "z > above[i] ? 1 : 0", "z >= above[i] ? 1 : 0"),
    "counts: no barrier before they are added": (SCAN,
        "+ lane] = count[i];\n    __syncthreads();\n", "+ lane] = count[i];\n"),
    "counts: the last warp's are left out": (SCAN, "for (int w = 0; w < warps; w++) sum", "for (int w = 0; w + 1 < warps; w++) sum"),
}
PARTS = {SCAN: "lists"} # what TEST runs, but for "kernels" and "warpgroups"


def build(kernels, out, compiler, link, name, fault):
    """A module with the fault; files that do not hold it are those of the unchanged module."""
    folder = out / "".join(c if c.isalnum() else "_" for c in name)
    copies = folder / "kernels" / "cuda"
    copies.mkdir(parents=True, exist_ok=True)
    if fault:
        text = (kernels / fault[0]).read_text()
        if text.count(fault[1]) != 1:
            raise SystemExit(f"{name}: its text occurs {text.count(fault[1])} times in {fault[0]}")
        (copies / fault[0]).write_text(text.replace(fault[1], fault[2]))
    objects = []
    for file in FILES:
        changed = fault is None or fault[0] == file or file in INCLUDED.get(fault[0], ())
        objects.append((folder if changed else out / "unchanged") / f"{file}.o")
        if changed:
            source = copies / file if (copies / file).exists() else kernels / file
            subprocess.run([compiler[0], f"-I{folder}", *compiler[1:], "-x", "c++", "-c", source, "-o",
                            objects[-1]], check=True)
    module = folder / "module.so"
    subprocess.run([compiler[0], "-shared", "-o", module, *objects, *link], check=True)
    return module


def outcome(test, module, order, rung, part=None, **settings):
    """rung None: the kernels for sm_80; else one for sm_90a, "" for the device's own choice."""
    env = {**os.environ, "ATTNSTRESS_CUDA_MODULE": str(module), "CUEMU_ORDER": order, **settings,
           **({} if rung is None else {**HOPPER, "ATTNSTRESS_CUDA_RUNG": rung})}
    run = subprocess.run([test, "cuda", part or ("kernels" if rung is None else "warpgroups")], env=env,
                         capture_output=True, text=True, timeout=250)
    return run.returncode, run.stderr


def seen_by(test, module, rung, part):
    """The first schedule that fails."""
    for order in ORDERS:
        if outcome(test, module, order, rung, part)[0] != 0:
            return order
    return None


def main():
    kernels, out, test = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2]), sys.argv[3]
    words = sys.argv.pop(5) if sys.argv[4] == "-k" else ""
    if words:
        del sys.argv[4]
    split = sys.argv.index("--")
    compiler, link = sys.argv[4:split], sys.argv[split + 1:]
    module = build(kernels, out, compiler, link, "unchanged", None)
    with concurrent.futures.ThreadPoolExecutor(max_workers=2) as pool:
        runs = [(ORDERS[0], None), (ORDERS[1], None), (ORDERS[0], "wgmma"), (ORDERS[1], "tma"), (ORDERS[0], "")]
        for (order, rung), (code, text) in zip(runs, pool.map(lambda r: outcome(test, module, *r), runs)):
            if code != 0:
                raise SystemExit(f"the unchanged kernels fail ({order}, rung {rung}):\n{text[-2000:]}")

        def one(item):
            name, fault = item
            changed = build(kernels, out, compiler, link, name, fault)
            return name, seen_by(test, changed, RUNGS.get(fault[0]), PARTS.get(fault[0]))

        chosen = {name: fault for name, fault in FAULTS.items() if words in name}
        missed = 0
        for name, order in pool.map(one, chosen.items()):
            print(f"{'seen by ' + order if order else 'MISSED':24} {name}", flush=True)
            missed += order is None
        if REFUSED in chosen:
            module = build(kernels, out, compiler, link, REFUSED, FAULTS[REFUSED])
            code, text = outcome(test, module, ORDERS[0], "")
            found = code == 0 and "(TMA)" in text and "are not used" in text
            print(f"{'refused' if found else 'MISSED':24} {REFUSED}, the device's own choice")
            missed += not found
    print(f"{len(chosen) + (REFUSED in chosen) - missed} passed, {missed} failed")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
