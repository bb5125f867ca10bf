"""The suite must see faults planted in copies of the kernels' text: a check that cannot fail is none.

usage: test_faults.py KERNELS OUT TEST CXX FLAGS... -- LINK...
For every fault a module is built from the changed text, and `TEST cuda kernels` must fail under at
least one schedule of the emulator. The unchanged text must pass under all of them.
"""
import concurrent.futures
import os
import pathlib
import subprocess
import sys

ORDERS = ["forward", "reverse", "shuffled", "greedy", "greedy-shuffled"]
FILES = ["pass_mma.cu", "pass_simt.cu", "unfused.cu"]
MMA, SIMT = FILES[:2]
# name: file, text that occurs once, what stands there instead
FAULTS = {
    "no barrier before a stage is used again": (MMA,
        "                                         args.v_pitch);\n        }\n        __syncthreads();\n",
        "                                         args.v_pitch);\n        }\n"),
    "no barrier after the wait": (MMA,
        "            ptx::cp_wait<0>();\n        }\n        __syncthreads();\n",
        "            ptx::cp_wait<0>();\n        }\n"),
    "the last tile is not waited for": (MMA, "ptx::cp_wait<0>();", "ptx::cp_wait<1>();"),
    "one key too many in a ragged tile": (MMA,
        "const bool inside = key < piece.keys;", "const bool inside = key <= piece.keys;"),
    "one key too few in a ragged tile": (MMA,
        "const bool inside = key < piece.keys;", "const bool inside = key + 1 < piece.keys;"),
    "sums are raised after their factor": (MMA,
        "    s.e = f * (s.e + drop * s.l);\n    s.l *= f;\n",
        "    s.l *= f;\n    s.e = f * (s.e + drop * s.l);\n"),
    "factors of the two rows change places": (MMA, "o[n][0] *= f0;", "o[n][0] *= f1;"),
    "the low half of a weight is lost": (MMA,
        "            ptx::mma<T>(o[n], lo, b[0], b[1]);\n", ""),
    "the low half of a query is lost": (MMA,
        "        if (view.q_lo != nullptr)\n            multiply_keys", "        if (false)\n            multiply_keys"),
    "legality is not looked at": (MMA, "tile * KEYS, masked, s, top", "tile * KEYS, false, s, top"),
    "values are not transposed": (MMA, "ptx::ldmatrix_x4_trans(b,", "ptx::ldmatrix_x4(b,"),
    "one step of a sum over the quad": (MMA,
        "    x += __shfl_xor_sync(0xffffffffu, x, 1);\n    return x + __shfl_xor_sync(0xffffffffu, x, 2);",
        "    return x + __shfl_xor_sync(0xffffffffu, x, 2);"),
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
    folder = out / "".join(c if c.isalnum() else "_" for c in name)
    folder.mkdir(parents=True, exist_ok=True)
    objects = []
    for file in FILES:
        source = kernels / file
        if fault and fault[0] == file:
            text = source.read_text()
            if text.count(fault[1]) != 1:
                raise SystemExit(f"{name}: its text occurs {text.count(fault[1])} times in {file}")
            source = folder / file
            source.write_text(text.replace(fault[1], fault[2]))
        # Files without a fault are compiled once, by the unchanged module.
        target = (folder if fault is None or fault[0] == file else out / "unchanged") / f"{file}.o"
        if fault is None or fault[0] == file:
            subprocess.run([*compiler, "-x", "c++", "-c", source, "-o", target], check=True)
        objects.append(target)
    module = folder / "module.so"
    subprocess.run([compiler[0], "-shared", "-o", module, *objects, *link], check=True)
    return module


def outcome(test, module, order):
    env = {**os.environ, "ATTNSTRESS_CUDA_MODULE": str(module), "CUEMU_ORDER": order}
    run = subprocess.run([test, "cuda", "kernels"], env=env, capture_output=True, text=True, timeout=120)
    return run.returncode, run.stderr[-2000:]


def seen_by(test, module):
    """The first schedule that fails; what a person would look for first comes first."""
    for order in ["forward", "greedy", "greedy-shuffled", "reverse", "shuffled"]:
        code, _ = outcome(test, module, order)
        if code != 0:
            return order
    return None


def main():
    kernels, out, test = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2]), sys.argv[3]
    split = sys.argv.index("--")
    compiler, link = sys.argv[4:split], sys.argv[split + 1:]
    module = build(kernels, out, compiler, link, "unchanged", None)
    with concurrent.futures.ThreadPoolExecutor(max_workers=2) as pool:
        for order, (code, text) in zip(ORDERS, pool.map(lambda o: outcome(test, module, o), ORDERS)):
            if code != 0:
                raise SystemExit(f"the unchanged kernels fail ({order}):\n{text}")
        def one(item):
            name, fault = item
            return name, seen_by(test, build(kernels, out, compiler, link, name, fault))
        missed = 0
        for name, order in pool.map(one, FAULTS.items()):
            print(f"{'seen by ' + order if order else 'MISSED':24} {name}")
            missed += order is None
    print(f"{len(FAULTS) - missed} passed, {missed} failed")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
