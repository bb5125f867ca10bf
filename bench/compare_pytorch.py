#!/usr/bin/env python3
"""The same suite in attnstress and as one would write it in PyTorch, on the same machine.

A synthetic head group (float32 q, k, v with RoPE) is stored as a capture. A suite of V variants,
half of them copies of a span inserted at V/2 places, half windows hidden at V/2 places, is run by
the program and by PyTorch (tensors already in memory; concatenate or mask, scaled dot product,
softmax, reduce to the same metrics, which stay in memory; all threads, inference mode). Printed:

- PyTorch against `evaluate` and `measure` of the same run, its own times: like for like, tensors
  and metrics in memory on both sides. This is what the bars are about.
- PyTorch against the whole command, which also starts, reads the capture, plans and writes the
  result file: what a user waits for.
- PyTorch with SDPA alone (outputs, no metrics), and the largest difference of every metric that
  both computed.

On a busy machine compare processor times.

    python3 bench/compare_pytorch.py                         # V 64, n 16384, L 32, then V 256, n 32768
    python3 bench/compare_pytorch.py --variants 64 --keys 16384 --rows 64

Needs torch, numpy, h5py and hdf5plugin, and the program (--program or ATTNSTRESS_PROGRAM).
"""

from __future__ import annotations

import argparse
import json
import math
import os
import platform
import resource
import signal
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

import h5py
import hdf5plugin
import numpy as np
import torch
import torch.nn.functional as F

COPY_SPANS = 8  # spans that are copied; the span axis is these, sink, recent, rest, inserted
TOP_K = 8
SINK_ROWS, RECENT_ROWS = 4, 64
BARS = {(64, 16384): (100, 400), (256, 32768): (300, 1000)}  # (variants, keys): must, goal


@dataclass
class Problem:
    """q [Hq, P, d], k and v [Hkv, n, d] float32, rotated to their positions 0..n-1."""

    q: torch.Tensor
    k: torch.Tensor
    v: torch.Tensor
    inv_freq: torch.Tensor
    scale: float
    spans: dict[str, tuple[int, int]]

    @property
    def n(self) -> int:
        return self.k.shape[1]

    @property
    def probes(self) -> int:
        return self.q.shape[1]

    @property
    def cap(self) -> int:
        """Row of the first probe: nothing is inserted or hidden from there on."""
        return self.n - self.probes


@dataclass
class Edit:
    perturbation: str
    coordinate: float  # `depth` of an insertion, `at` of a window
    insert_at: int = -1
    source: tuple[int, int] = (0, 0)
    hide: tuple[int, int] = (0, 0)


def rotate(x: torch.Tensor, delta: torch.Tensor, inv_freq: torch.Tensor) -> torch.Tensor:
    """x [..., m, d] moved by delta [m] positions, half layout, angles in double."""
    angle = delta.double()[:, None] * inv_freq[None, :]
    cos, sin = angle.cos().to(x.dtype), angle.sin().to(x.dtype)
    a, b = x.chunk(2, dim=-1)
    return torch.cat([a * cos - b * sin, b * cos + a * sin], dim=-1)


def make_problem(args: argparse.Namespace, n: int, length: int) -> Problem:
    """Logits of standard deviation near 2; the copied spans stand out for the probes."""
    generator = torch.Generator().manual_seed(args.seed)
    normal = lambda *shape: torch.randn(*shape, generator=generator)
    probes, group = args.rows // args.query_heads, args.query_heads // args.key_heads
    q = normal(args.query_heads, probes, args.head_dim)
    k = normal(args.key_heads, n, args.head_dim)
    v = normal(args.key_heads, n, args.head_dim)
    spans = {}
    for i in range(COPY_SPANS):
        start = 128 + i * ((n - probes - 256) // COPY_SPANS)
        spans[f"s{i}"] = (start, start + length)
        k[:, start : start + length] += 0.15 * q[::group, -1:, :]
    inv_freq = 10000.0 ** (-torch.arange(0, args.head_dim, 2, dtype=torch.float64) / args.head_dim)
    positions = torch.arange(n)
    scale = 2.0 / math.sqrt(args.head_dim)
    return Problem(rotate(q, positions[n - probes :], inv_freq), rotate(k, positions, inv_freq), v,
                   inv_freq, scale, spans)


def make_edits(problem: Problem, variants: int, width: int) -> list[Edit]:
    """V/2 insertions (every span at V/16 places) and V/2 windows, no two alike."""
    cap, edits = problem.cap, []
    per_span = max(1, variants // (2 * COPY_SPANS))
    inside = lambda at: any(a < at < b for a, b in problem.spans.values())
    for i, (name, span) in enumerate(problem.spans.items()):
        for j in range(per_span):
            share = (j * COPY_SPANS + i + 0.5) / (per_span * COPY_SPANS)
            at = 256 + int(share * (cap - 512))
            while inside(at):
                at += 1
            edits.append(Edit(f"copy-{name}", (at - 1) / (cap - 1), insert_at=at, source=span))
    windows = variants - len(edits)
    for i in range(windows):
        start = int((i + 0.5) / windows * (cap - width))
        at = (start + 0.5) / (cap - width)
        edits.append(Edit("windows", at, hide=(start, start + width)))
    return edits


def write_capture(problem: Problem, path: Path) -> None:
    n, probes = problem.n, problem.probes
    text = h5py.string_dtype()
    with h5py.File(path, "w", libver=("v108", "v108"), track_order=True) as f:
        f.attrs.update(format="attnstress-capture", format_version=1, model_id="synthetic",
                       checkpoint="compare_pytorch", weights_hash="", tokenizer_hash="",
                       created="", producer="compare_pytorch.py")
        layer = f.create_group("layers/0")
        d = problem.q.shape[2]
        layer.attrs.update(n_q_heads=problem.q.shape[0], n_kv_heads=problem.k.shape[0], d_qk=d,
                           d_v=d, scale=problem.scale, softcap=0.0, window=0, chunk=0, causal=1,
                           rope_layout="half", rope_dynamic=0, max_position=1 << 20,
                           positions="rope")
        layer["inv_freq"] = problem.inv_freq.numpy()
        sample = f.create_group("samples/0", track_order=True)
        sample.attrs.update(id="s0", cluster="s0", n_keys=n)
        sample["tokens"] = np.arange(n, dtype="i4")
        sample["position"] = np.arange(n, dtype="i8")
        spans = sample.create_group("spans")
        spans.create_dataset("name", data=list(problem.spans), dtype=text)
        spans.create_dataset("role", data=["gold"] * len(problem.spans), dtype=text)
        spans["start"] = np.array([a for a, _ in problem.spans.values()], "i8")
        spans["stop"] = np.array([b for _, b in problem.spans.values()], "i8")
        group = sample.create_group("probes")
        group["index"] = np.arange(n - probes, n, dtype="i8")
        group["position"] = np.arange(n - probes, n, dtype="i8")
        group.create_dataset("role", data=["answer"] * probes, dtype=text)
        tensors = sample.create_group("layers/0")
        for name, x in (("q", problem.q), ("k", problem.k), ("v", problem.v)):
            rows = min(x.shape[1], 1024)
            item = tensors.create_dataset(name, data=x.contiguous().numpy(), chunks=(1, rows, d),
                                          shuffle=True, **hdf5plugin.Zstd(clevel=3))
            item.attrs["storage_dtype"] = "float32"
        f.attrs["complete"] = 1


def write_suite(edits: list[Edit], capture: Path, width: int, path: Path) -> None:
    """JSON is YAML."""
    perturbations = []
    for name in dict.fromkeys(e.perturbation for e in edits):
        values = [e.coordinate for e in edits if e.perturbation == name]
        if name == "windows":
            perturbations.append({"name": name, "kind": "mask_window", "pattern": "slide",
                                  "width": width, "at": values, "control": False})
        else:
            perturbations.append({"name": name, "kind": "duplicates", "positions": "overlay",
                                  "span": name.removeprefix("copy-"), "copies": 1,
                                  "placement": {"depth": values}, "control": False})
    suite = {"suite": "compare-pytorch", "version": 1, "seed": 1, "captures": [capture.name],
             "select": {"probes": "all"}, "spans": {"target": "s0", "axis": "name"},
             "perturbations": perturbations, "metrics": {"top_k": TOP_K},
             "output": {"detail": "probe"}}
    path.write_text(json.dumps(suite, indent=1))


# ---- PyTorch ----


class Base:
    """The unperturbed route; rows are [Hkv, G * P]."""

    def __init__(self, problem: Problem, dtype: torch.dtype):
        self.p = problem
        heads, self.d = problem.k.shape[0], problem.q.shape[2]
        self.q = problem.q.to(dtype).reshape(heads, -1, self.d)
        self.k, self.v = problem.k.to(dtype), problem.v.to(dtype)
        self.v_norm = self.v.norm(dim=-1)
        probe_rows = torch.arange(problem.cap, problem.n).repeat(self.q.shape[1] // problem.probes)
        self.illegal = torch.arange(problem.n)[None, :] > probe_rows[:, None]
        logits = (self.q @ self.k.mT * problem.scale).masked_fill(self.illegal, -math.inf)
        self.logits = logits
        self.lse = logits.logsumexp(-1)
        self.w = (logits - self.lse[..., None]).exp()
        self.entropy = torch.special.entr(self.w).sum(-1)
        self.o = self.w @ self.v
        self.o_norm = self.o.norm(dim=-1)
        self.regions = self.make_regions()
        self.spans = {name: self.span(self.logits, self.w, self.o, self.v, self.v_norm, keys)
                      for name, keys in self.regions.items()}

    def make_regions(self) -> dict[str, slice | torch.Tensor]:
        """Slices (views, no copies), but for the rows in none of the others."""
        n = self.p.n
        regions = {name: slice(a, b) for name, (a, b) in self.p.spans.items()}
        regions["sink"] = slice(0, SINK_ROWS)
        regions["recent"] = slice(n - RECENT_ROWS, n)
        rest = torch.ones(n, dtype=torch.bool)
        for keys in regions.values():
            rest[keys] = False
        regions["rest"] = rest.nonzero()[:, 0]
        return regions

    @staticmethod
    def best_outside(logits: torch.Tensor, keys: slice | torch.Tensor) -> torch.Tensor:
        if not isinstance(keys, slice):
            return logits.index_fill(-1, keys, -math.inf).amax(-1)
        sides = [x.amax(-1) for x in (logits[..., : keys.start], logits[..., keys.stop :])
                 if x.shape[-1]]
        return torch.stack(sides).amax(0)

    @classmethod
    def span(cls, logits, w, o, v, v_norm, keys) -> dict[str, torch.Tensor]:
        part_w, part_z = w[..., keys], logits[..., keys]
        best, best_w = part_z.amax(-1), part_w.amax(-1, keepdim=True)
        c = part_w @ v[:, keys]
        norm = c.norm(dim=-1)
        return {
            "mass": part_w.sum(-1),
            "lse": part_z.logsumexp(-1),
            "margin": best - cls.best_outside(logits, keys),
            "rank": 1.0 + (w > best_w).sum(-1),
            "c": c,
            "contribution_norm": norm,
            "contribution_share": (c * o).sum(-1) / o.square().sum(-1),
            "cancellation": norm / (part_w * v_norm[:, None, keys]).sum(-1),
        }


def js_bits(p: torch.Tensor, q: torch.Tensor, only_q: torch.Tensor, h_p, h_q) -> torch.Tensor:
    entr = torch.special.entr
    mix = entr(0.5 * (p + q)).sum(-1) + entr(0.5 * only_q).sum(-1)
    return (mix - 0.5 * (h_p + h_q)).clamp_min(0) / math.log(2)


def build(base: Base, edit: Edit):
    """Keys, values and legality of one variant: concatenated, or masked."""
    if edit.insert_at >= 0:
        at, (a, b) = edit.insert_at, edit.source
        rows = b - a
        moved = torch.arange(at - rows, at) - torch.arange(a, b)
        new_k = rotate(base.k[:, a:b], moved, base.p.inv_freq)
        k = torch.cat([base.k[:, :at], new_k, base.k[:, at:]], 1)
        v = torch.cat([base.v[:, :at], base.v[:, a:b], base.v[:, at:]], 1)
        none = torch.zeros(base.illegal.shape[0], rows, dtype=torch.bool)
        illegal = torch.cat([base.illegal[:, :at], none, base.illegal[:, at:]], 1)
        return k, v, illegal
    illegal = base.illegal.clone()
    illegal[:, edit.hide[0] : edit.hide[1]] = True
    return base.k, base.v, illegal


def metrics(base: Base, edit: Edit) -> dict[str, torch.Tensor]:
    k, v, illegal = build(base, edit)
    z = (base.q @ k.mT * base.p.scale).masked_fill_(illegal, -math.inf)
    lse = z.logsumexp(-1)
    w = (z - lse[..., None]).exp()
    o = w @ v
    o_norm = o.norm(dim=-1)
    entropy = torch.special.entr(w).sum(-1)
    at, rows = edit.insert_at, edit.source[1] - edit.source[0]
    if at >= 0:
        drop = lambda x: torch.cat([x[..., :at], x[..., at + rows :]], -1)
        ws, zs, new_w, new_v = drop(w), drop(z), w[..., at : at + rows], v[:, at : at + rows]
    else:
        ws, zs, new_w, new_v = w, z, w[..., :0], v[:, :0]
    w0 = base.w
    gone = w0.masked_fill(zs != -math.inf, 0)
    kept = w0 - gone
    a, b = kept.sum(-1, keepdim=True), ws.sum(-1, keepdim=True)
    intrusion, removal = new_w.sum(-1), gone.sum(-1)
    pc, qc = kept / a, ws / b
    old, new = kept @ base.v, ws @ base.v
    ratio = b / a
    parts = {"removal": -(gone @ base.v), "intrusion": new_w @ new_v, "dilution": (ratio - 1) * old,
             "reroute": new - ratio * old}
    top = w.topk(TOP_K, -1)
    v_norm = v.norm(dim=-1)
    heavy = (w * v_norm[:, None]).topk(TOP_K, -1)
    entr, empty = torch.special.entr, w[..., :0]
    out = {
        "lse": lse, "lse_shift": lse - base.lse, "entropy": entropy, "effective_keys": entropy.exp(),
        "effective_keys_n2": 1 / w.square().sum(-1), "max_weight": top.values[..., 0],
        "topk_weight": top.values, "topk_contribution_norm": heavy.values,
        "legal_keys": (~illegal).sum(-1).expand_as(lse), "intrusion": intrusion, "removal": removal,
        "tv": 0.5 * ((kept - ws).abs().sum(-1) + removal + intrusion),
        "hellinger": (1 - (w0 * ws).sqrt().sum(-1)).clamp_min(0).sqrt(),
        "js": js_bits(w0, ws, new_w, base.entropy, entropy),
        "reroute_tv": 0.5 * (pc - qc).abs().sum(-1),
        "reroute_js": js_bits(pc, qc, empty, entr(pc).sum(-1), entr(qc).sum(-1)),
        "output_norm": o_norm, "output_change": (o - base.o).norm(dim=-1) / base.o_norm,
        "output_cosine": (o * base.o).sum(-1) / (o_norm * base.o_norm),
        "output_norm_ratio": o_norm / base.o_norm,
        "delta_norm": torch.stack([x.norm(dim=-1) for x in parts.values()], -1),
        "delta_share": torch.stack([(x * base.o).sum(-1) for x in parts.values()], -1)
        / base.o_norm.square()[..., None],
    }
    per_span = {name: base.span(zs, ws, o, base.v, base.v_norm, keys)
                for name, keys in base.regions.items()}
    if at >= 0:
        best_new, best_w = z[..., at : at + rows].amax(-1), new_w
        for name, s in per_span.items():
            keys = base.regions[name]
            inside = zs[..., keys].amax(-1)
            outside = torch.maximum(inside - s["margin"], best_new)
            s["margin"] = inside - outside
            s["rank"] = s["rank"] + (best_w > ws[..., keys].amax(-1)[..., None]).sum(-1)
    for name in ("mass", "margin", "rank", "contribution_norm", "contribution_share",
                 "cancellation"):
        out[name] = torch.stack([s[name] for s in per_span.values()], -1)
    out["log_mass_shift"] = torch.stack(
        [s["mass"].log() - base.spans[n]["mass"].log() for n, s in per_span.items()], -1)
    out["own_logit_shift"] = torch.stack(
        [s["lse"] - base.spans[n]["lse"] for n, s in per_span.items()], -1)
    out["contribution_change"] = torch.stack(
        [(s["c"] - base.spans[n]["c"]).norm(dim=-1) for n, s in per_span.items()], -1)
    out["retention"] = out["log_mass_shift"].exp()
    hidden = torch.stack([s["mass"] == 0 for s in per_span.values()], -1)
    for name in ("margin", "rank", "log_mass_shift", "own_logit_shift"):
        out[name] = out[name].masked_fill(hidden, math.nan)
    return out


def sdpa(base: Base, edit: Edit) -> torch.Tensor:
    k, v, illegal = build(base, edit)
    return F.scaled_dot_product_attention(base.q[None], k[None], v[None],
                                          attn_mask=~illegal, scale=base.p.scale)


# ---- comparison ----


def find_program(given: str | None) -> str:
    root = Path(__file__).resolve().parent.parent
    for path in (given, os.environ.get("ATTNSTRESS_PROGRAM"), root / "build/release/attnstress"):
        if path and Path(path).is_file():
            return str(path)
    sys.exit("compare_pytorch: no program; build it (scripts/quickstart.sh) or give --program")


def run_program(program: str, suite: Path, out: Path, repeat: int,
                backend: str) -> list[tuple[float, float, float, dict]]:
    """(seconds, processor seconds, seconds of evaluate and measure, all phases) of every run."""
    times = []
    summary = out.with_suffix(".json")
    for _ in range(repeat):
        out.unlink(missing_ok=True)
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        start = time.perf_counter()
        done = subprocess.run([program, "run", str(suite), "-o", str(out), "-q", "--backend",
                               backend, "--summary", str(summary)], capture_output=True, text=True)
        wall, after = time.perf_counter() - start, resource.getrusage(resource.RUSAGE_CHILDREN)
        if done.returncode:
            sys.exit(f"compare_pytorch: attnstress ended with {done.returncode}:\n{done.stderr}")
        phases = json.loads(summary.read_text())["phases"]
        times.append((wall, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime,
                      phases["evaluate"] + phases["measure"], phases))
    return times


def program_rows(path: Path, edits: list[Edit]) -> tuple[dict[str, np.ndarray], list[int]]:
    """Arrays of the result and the case that each edit has there."""
    with h5py.File(path) as f:
        text = lambda name: [x.decode() if isinstance(x, bytes) else x for x in f[name][()]]
        names, depth, at = text("perturbation"), f["depth"][()], f["at"][()]
        arrays = {k: d[()] for k, d in f.items() if isinstance(d, h5py.Dataset) and d.ndim >= 4}
        arrays["span"] = np.array(text("span"), dtype=object)
    where = {(name, float(a if name == "windows" else x)): i
             for i, (name, x, a) in enumerate(zip(names, depth, at))}
    return arrays, [where[e.perturbation, e.coordinate] for e in edits]


def difference(result, cases, ours: list[dict[str, torch.Tensor]], problem: Problem):
    """{metric: (largest absolute difference, largest magnitude)} over every variant and cell."""
    heads, probes = problem.q.shape[0], problem.probes
    order = [list(result["span"]).index(n) for n in
             [*problem.spans, "sink", "recent", "rest"]]
    worst = {}
    for case, mine in zip(cases, ours):
        for name, x in mine.items():
            if name not in result:
                continue
            theirs = result[name][case, 0]
            if theirs.ndim > 2 and theirs.shape[2] == len(result["span"]):
                theirs = theirs[..., order]
            elif name.startswith("delta"):
                theirs = theirs[..., :4]  # nothing changes a value here: the part `payload` is 0
            x = x.reshape(heads, probes, *x.shape[2:]).double().numpy()
            lone = int((np.isnan(x) != np.isnan(theirs)).sum())
            if lone:
                worst[name + " undefined in one"] = (float(lone), math.nan)
            gap = np.nanmax(np.abs(x - theirs), initial=0.0)
            size = np.nanmax(np.abs(x), initial=0.0)
            old = worst.get(name, (0.0, 0.0))
            worst[name] = (max(old[0], float(gap)), max(old[1], float(size)))
    return worst


def cpu_name() -> str:
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.split(":", 1)[1].strip()
    return platform.processor()


def compare(args: argparse.Namespace, variants: int, n: int, length: int) -> dict:
    problem = make_problem(args, n, length)
    edits = make_edits(problem, variants, args.width)
    record = {"variants": len(edits), "keys": n, "rows_inserted": length, "window": args.width,
              "query_rows": args.rows, "query_heads": args.query_heads,
              "key_heads": args.key_heads, "head_dim": args.head_dim}
    with torch.inference_mode(), tempfile.TemporaryDirectory() as folder:
        base = Base(problem, torch.float32)
        metrics(base, edits[0]), sdpa(base, edits[0])
        start, processor = time.perf_counter(), time.process_time()
        base = Base(problem, torch.float32)
        ours = [metrics(base, e) for e in edits]
        record["pytorch_metrics_s"] = time.perf_counter() - start
        record["pytorch_metrics_processor_s"] = time.process_time() - processor
        start = time.perf_counter()
        for edit in edits:
            sdpa(base, edit)
        record["pytorch_sdpa_s"] = time.perf_counter() - start
        if not args.pytorch_only:
            capture, suite = Path(folder) / "c.h5", Path(folder) / "suite.yaml"
            write_capture(problem, capture)
            write_suite(edits, capture, args.width, suite)
            out = Path(folder) / "r.h5"
            times = run_program(find_program(args.program), suite, out, args.repeat, args.backend)
            best, processor, inside = (min(t[i] for t in times) for i in (0, 1, 2))
            record["phases"] = min(times, key=lambda t: t[0])[3]
            record["attnstress_evaluate_s"] = inside
            record["times_faster_in_memory"] = record["pytorch_metrics_s"] / inside
            record["bar"] = BARS.get((variants, n))
            record["attnstress_command_s"] = best
            record["attnstress_processor_s"] = processor
            record["times_faster"] = record["pytorch_metrics_s"] / best
            record["times_less_processor"] = record["pytorch_metrics_processor_s"] / processor
            record["times_faster_than_sdpa"] = record["pytorch_sdpa_s"] / best
            worst = difference(*program_rows(out, edits), ours, problem)
            record["largest_difference"] = worst
    return record


def show(record: dict) -> None:
    print("{variants} variants, {keys} keys, {rows_inserted} rows inserted or {window} hidden, "
          "{query_rows} query rows ({query_heads} query, {key_heads} key heads), d = {head_dim}"
          .format(**record))
    v = record["variants"]
    for key, label in (("pytorch_metrics_s", "PyTorch, same metrics"),
                       ("pytorch_sdpa_s", "PyTorch, SDPA alone, no metrics"),
                       ("attnstress_evaluate_s", "attnstress, evaluate and measure"),
                       ("attnstress_command_s", "attnstress run, whole command")):
        if key in record:
            print(f"  {label:34}{record[key]:9.3f} s   {1e3 * record[key] / v:8.2f} ms a variant")
    if "times_faster" in record:
        bar, times = record["bar"], record["times_faster_in_memory"]
        verdict = "" if bar is None else (
            f" (bar {bar[0]}x / {bar[1]}x: "
            f"{'goal' if times >= bar[1] else 'must' if times >= bar[0] else 'missed'})")
        print(f"  in memory, the same metrics: {times:.1f} times as fast{verdict}")
        print(f"  whole command: {record['times_faster']:.1f} times as fast, "
              f"{record['times_faster_than_sdpa']:.1f} times as fast as SDPA alone; processor time "
              f"{record['pytorch_metrics_processor_s']:.2f} s against "
              f"{record['attnstress_processor_s']:.2f} s, {record['times_less_processor']:.1f} times")
        print("  its phases: " + ", ".join(f"{k} {v:.3f} s" for k, v in record["phases"].items()))
        print(f"  {'metric':26}{'largest difference':>20}{'largest value':>16}")
        for name, (gap, size) in record["largest_difference"].items():
            print(f"  {name:26}{gap:20.2e}{size:16.3g}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--variants", type=int)
    parser.add_argument("--keys", type=int)
    parser.add_argument("--length", type=int, default=32, help="rows of an inserted copy")
    parser.add_argument("--width", type=int, default=512, help="rows of a hidden window")
    parser.add_argument("--rows", type=int, default=64, help="query heads x probes")
    parser.add_argument("--query-heads", type=int, default=4)
    parser.add_argument("--key-heads", type=int, default=2)
    parser.add_argument("--head-dim", type=int, default=128)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--repeat", type=int, default=3, help="runs of the program; the best counts")
    parser.add_argument("--backend", default="auto")
    parser.add_argument("--program")
    parser.add_argument("--pytorch-only", action="store_true")
    parser.add_argument("--json", action="store_true")
    args = parser.parse_args()
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    if args.rows % args.query_heads or args.query_heads % args.key_heads:
        parser.error("--rows must be a multiple of --query-heads, those of --key-heads")
    if (args.variants is None) != (args.keys is None):
        parser.error("--variants and --keys go together")
    sizes = [(args.variants, args.keys)] if args.variants else [(64, 16384), (256, 32768)]
    torch.set_num_threads(len(os.sched_getaffinity(0)))
    machine = {"cpu": cpu_name(), "threads": torch.get_num_threads(), "torch": torch.__version__}
    records = []
    if not args.json:
        print("{cpu}, {threads} threads, PyTorch {torch}".format(**machine))
    for variants, n in sizes:
        records.append(compare(args, variants, n, args.length))
        if not args.json:
            show(records[-1])
    if args.json:
        json.dump({"machine": machine, "sizes": records}, sys.stdout, indent=1)
        print()


if __name__ == "__main__":
    main()
