"""The suite must see faults planted in copies of the kernels' text: a check that cannot fail is none.

usage: test_faults.py KERNELS OUT TEST CXX FLAGS... -- LINK...
For every fault a module is built from the changed text, and `TEST cuda kernels` (for the rung of
warpgroups `TEST cuda warpgroups`) must fail under at least one schedule of the emulator. The unchanged
text must pass.
"""
import concurrent.futures
import os
import pathlib
import subprocess
import sys

ORDERS = ["forward", "greedy", "greedy-shuffled", "reverse", "shuffled"]
FILES = ["pass_mma.cu", "pass_wgmma.cu", "pass_simt.cu", "unfused.cu"]
MMA, WGMMA, SIMT = FILES[:3]
ROWS = "pass_rows.cuh" # what the two rungs share
HOPPER = {"CUEMU_CAPABILITY": "90", "CUEMU_SHARED": "232448", "ATTNSTRESS_CUDA_RUNG": "wgmma"}
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
    "factors of the two rows change places": (ROWS, "o[n][0] *= f0;", "o[n][0] *= f1;"),
    "the low half of a weight is lost": (MMA,
        "            ptx::mma<T>(o[n], lo, b[0], b[1]);\n", ""),
    "the low half of a query is lost": (MMA,
        "        if (view.q_lo != nullptr)\n            multiply_keys", "        if (false)\n            multiply_keys"),
    "legality is not looked at": (MMA, "tile * KEYS, masked, s, top", "tile * KEYS, false, s, top"),
    "values are not transposed": (MMA, "ptx::ldmatrix_x4_trans(b,", "ptx::ldmatrix_x4(b,"),
    "one step of a sum over the quad": (ROWS,
        "    x += __shfl_xor_sync(0xffffffffu, x, 1);\n    return x + __shfl_xor_sync(0xffffffffu, x, 2);",
        "    return x + __shfl_xor_sync(0xffffffffu, x, 2);"),
    "warpgroups: no barrier before a stage is used again": (WGMMA,
        "            ptx::wgmma_wait(o);\n        }\n        __syncthreads();\n",
        "            ptx::wgmma_wait(o);\n        }\n"),
    "warpgroups: copies are not fenced": (WGMMA, "        ptx::fence_proxy_async();\n", ""),
    "warpgroups: logits are not waited for": (WGMMA,
        "        ptx::wgmma_commit();\n        ptx::wgmma_wait(s);\n", "        ptx::wgmma_commit();\n"),
    "warpgroups: the swizzle of another row": (WGMMA, "((part % 8) ^ (row % 8)) * 16", "((part % 8) ^ (row % 4)) * 16"),
    "warpgroups: the rows of the first group for all": (WGMMA, "q_hi + group", "q_hi"),
    "warpgroups: sums are not cleared": (WGMMA, "k_tile, args.k_pitch, false)", "k_tile, args.k_pitch, true)"),
    "warpgroups: values of another step": (WGMMA, "(column * KEYS + step * 16)", "(column * KEYS + step * 8)"),
    "simt: no barrier before a tile is replaced": (SIMT,
        "                    acc[r][j] += q * shared.tile[c * TILE_STRIDE + tx + 16 * j];\n            }\n        __syncthreads();\n",
        "                    acc[r][j] += q * shared.tile[c * TILE_STRIDE + tx + 16 * j];\n            }\n"),
    "simt: no barrier before a tile is used": (SIMT,
        "                    : 0.0f;\n        }\n        __syncthreads();\n        for (int c = 0; c < depth; c++)\n#pragma unroll\n            for (int r = 0; r < ROW_STEPS; r++) {\n                const float q",
        "                    : 0.0f;\n        }\n        for (int c = 0; c < depth; c++)\n#pragma unroll\n            for (int r = 0; r < ROW_STEPS; r++) {\n                const float q"),
    "simt: the last key of a piece": (SIMT,
        "if (key >= piece.keys) continue;", "if (key + 1 >= piece.keys) continue;"),
}


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
        changed = fault is None or fault[0] == file or (fault[0] == ROWS and file in (MMA, WGMMA))
        objects.append((folder if changed else out / "unchanged") / f"{file}.o")
        if changed:
            source = copies / file if (copies / file).exists() else kernels / file
            subprocess.run([compiler[0], f"-I{folder}", *compiler[1:], "-x", "c++", "-c", source, "-o",
                            objects[-1]], check=True)
    module = folder / "module.so"
    subprocess.run([compiler[0], "-shared", "-o", module, *objects, *link], check=True)
    return module


def outcome(test, module, order, warpgroups):
    env = {**os.environ, "ATTNSTRESS_CUDA_MODULE": str(module), "CUEMU_ORDER": order,
           **(HOPPER if warpgroups else {})}
    run = subprocess.run([test, "cuda", "warpgroups" if warpgroups else "kernels"], env=env,
                         capture_output=True, text=True, timeout=250)
    return run.returncode, run.stderr[-2000:]


def seen_by(test, module, warpgroups):
    """The first schedule that fails."""
    for order in ORDERS:
        if outcome(test, module, order, warpgroups)[0] != 0:
            return order
    return None


def main():
    kernels, out, test = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2]), sys.argv[3]
    split = sys.argv.index("--")
    compiler, link = sys.argv[4:split], sys.argv[split + 1:]
    module = build(kernels, out, compiler, link, "unchanged", None)
    with concurrent.futures.ThreadPoolExecutor(max_workers=2) as pool:
        runs = [(order, rung) for rung in (False, True) for order in ORDERS[:2]]
        for (order, rung), (code, text) in zip(runs, pool.map(lambda r: outcome(test, module, *r), runs)):
            if code != 0:
                raise SystemExit(f"the unchanged kernels fail ({order}, warpgroups {rung}):\n{text}")

        def one(item):
            name, fault = item
            changed = build(kernels, out, compiler, link, name, fault)
            return name, seen_by(test, changed, fault[0] == WGMMA)

        missed = 0
        for name, order in pool.map(one, FAULTS.items()):
            print(f"{'seen by ' + order if order else 'MISSED':24} {name}")
            missed += order is None
    print(f"{len(FAULTS) - missed} passed, {missed} failed")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
