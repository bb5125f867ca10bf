"""Compares cache policies and roundings with numpy versions of their own.

usage: compare_policies.py PROGRAM RESULT CAPTURE

For every case, layer and key head the hidden rows and the replaced rows come from
`PROGRAM explain --json --rows`; here the policy is computed again from the capture's stored words:
attention weights of all captured probes for heavy hitters, least and largest elements for integer
rounding. `removal` of the file is compared with the base mass of the rows that went. Needs h5py and
HDF5_PLUGIN_PATH.
"""
import json
import pathlib
import subprocess
import sys

import h5py
import numpy as np

sys.path.insert(0, str(pathlib.Path(__file__).parent))
from compare_result import Capture, text  # noqa: E402

DEFAULTS = {"sinks": 4, "recent": 0.5, "block": 16}


def softmax(x):
    e = np.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def weights(c, kv, heads):
    """[heads, probes, keys] by definition."""
    legal = c.pos[None, :] <= c.qpos[:, None]
    if c.contract.window:
        legal &= c.qpos[:, None] - c.pos[None, :] < c.contract.window
    out = []
    for h in heads:
        x = c.contract.scale * (c.q[h] @ c.k[kv].T)
        out.append(softmax(np.where(legal, x, -np.inf)))
    return np.array(out)


def evicted(c, kv, cap, params):
    budget = params["budget"]
    rows = int(np.floor(budget * cap + 0.5))
    kept = np.zeros(cap, bool)
    policy = params["policy"]
    if policy == "recent":
        kept[cap - rows:] = True
    elif policy == "sink_recent":
        first = min(rows, int(params["sinks"]))
        kept[:first] = True
        kept[cap - (rows - first):] = True
    elif policy == "every_block":
        block = int(params["block"])
        for b in range(-(-cap // block)):
            if int((b + 1) * budget + 1e-9) > int(b * budget + 1e-9):
                kept[b * block:(b + 1) * block] = True
    else:
        mass = weights(c, kv, range(kv * c.group, (kv + 1) * c.group)).sum((0, 1))[:cap]
        last = int(np.floor(params["recent"] * rows + 0.5))
        kept[cap - last:] = True
        order = sorted(range(cap - last), key=lambda i: (-mass[i], i))
        kept[order[:rows - last]] = True
    return np.flatnonzero(~kept)


def quantised(x, bits, per, group):
    x = x if per == "token" else x.T
    step = group or x.shape[1]
    out = x.copy()
    for line in range(x.shape[0]):
        for a in range(0, x.shape[1], step):
            part = x[line, a:a + step]
            low, high = part.min(), part.max()
            if high > low:
                s = (high - low) / (2 ** bits - 1)
                out[line, a:a + step] = low + s * np.rint((part - low) / s)
    return out if per == "token" else out.T


def check_mask(edit, c, kv, params, cap):
    hidden = sorted(i for s in edit["segments"] if s["kind"] == "hide"
                    for i in range(s["start"], s["stop"]))
    want = list(evicted(c, kv, cap, params))
    assert hidden == want, (params, len(hidden), len(want))
    return want


def check_rows(edit, c, kv, params):
    bits = {"int8": 8, "int4": 4}[params["round"]]
    group = int(params["group"])
    for name, stored in (("k", c.k[kv]), ("v", c.v[kv])):
        tensor = {"k": "keys", "v": "values"}[name]
        if params["tensor"] not in (tensor, "both"):
            continue
        want = quantised(stored, bits, params["per"], group).astype(np.float32)
        got = np.array(edit[name], np.float64)
        worst = np.abs(got - want).max()
        assert worst <= 2e-6 * np.abs(want).max(), (params, name, worst)


def main(program, result, path):
    compared = masks = 0
    with h5py.File(result) as f:
        variant = [text(x) for x in f["variant"][:]]
        kind = [text(x) for x in f["kind"][:]]
        arm = [text(x) for x in f["arm"][:]]
        sample = f["sample_index"][:]
        ids = [text(x) for x in f["sample_id"][:]]
        layers, heads = f["layer_index"][:], f["head_index"][:]
        names = ["policy", "budget", "sinks", "recent", "block", "round", "per", "group", "tensor"]
        columns = {n: f[n][:] if n in f else f["param_" + n][:] for n in names}
        removal = f["removal"][:]
        for case in range(len(variant)):
            if arm[case] != "treatment":
                continue
            params = {n: (text(v[case]) if isinstance(v[case], (bytes, str)) else float(v[case]))
                      for n, v in columns.items()}
            for li, layer in enumerate(layers):
                c = Capture(path, ids[sample[case]], int(layer))
                for kv in range(c.k.shape[0]):
                    head = kv * c.group
                    said = subprocess.run(
                        [program, "explain", result, "--case", str(case), "--layer", str(layer),
                         "--head", str(head), "--capture", path, "--json", "--rows"],
                        capture_output=True, text=True, check=True).stdout
                    edit = json.loads(said)["edit"]
                    compared += 1
                    if kind[case] == "noise":
                        check_rows(edit, c, kv, params)
                        continue
                    cap = int(np.flatnonzero(c.pos == c.qpos[-1])[0])
                    gone = check_mask(edit, c, kv, params, cap)
                    w = weights(c, kv, [head])[0, -1]
                    at = np.flatnonzero(heads == head)[0]
                    assert abs(w[gone].sum() - removal[case, li, at, 0]) < 2e-5
                    masks += 1
    assert masks > 0 and compared > masks
    print(f"{compared} edits equal numpy's, {masks} of them masks")


if __name__ == "__main__":
    main(*sys.argv[1:4])
