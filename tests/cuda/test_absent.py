"""The program without a GPU: doctor says why, auto takes the cpu, and a run that asks for the GPU
exits 4 with the same sentence. Then, on the emulated device, a capture is verified from end to end.

usage: test_absent.py PROGRAM MODULE EMULATED; files that were not built are left out.
"""
import json
import os
import pathlib
import subprocess
import sys
import tempfile

program, module, emulated = sys.argv[1:4]


def run(arguments, **settings):
    env = {k: v for k, v in os.environ.items() if not k.startswith(("CUEMU_", "ATTNSTRESS_CUDA"))}
    return subprocess.run([program, *arguments], env={**env, **settings}, capture_output=True, text=True,
                          timeout=250)


def backends(**settings):
    report = json.loads(run(["doctor", "--json"], **settings).stdout)
    return {b["name"]: b for b in report["backends"]}, report["auto"]


def absent(name, words, **settings):
    found, auto = backends(**settings)
    assert not found[name]["available"], found[name]
    for word in words:
        assert word in found[name]["reason"], (word, found[name]["reason"])
    return auto


SUITE = """
suite: lost
version: 1
seed: 3
captures: [three.h5]
spans: {target: gold}
perturbations:
  - {name: copies, kind: duplicates, copies: [1, 2], positions: overlay}
"""


def lost_in_a_run(folder, here):
    """A device lost in the middle: the sentence says where, what was finished is kept, the same command
    goes on, and the result is the undisturbed one."""
    capture, suite = pathlib.Path(folder, "three.h5"), pathlib.Path(folder, "lost.yaml")
    whole, broken = pathlib.Path(folder, "whole.h5"), pathlib.Path(folder, "broken.h5")
    made = run(["synth", "-o", str(capture), "--samples", "3", "--layers", "1", "--keys", "200", "--rope", "half"])
    assert made.returncode == 0, made.stderr
    suite.write_text(SUITE)
    arguments = ["run", str(suite), "--backend", "cuda", "-q", "-o"]
    done = run([*arguments, str(whole)], **here)
    assert done.returncode == 0, done.stderr
    for launches in range(10, 400, 10):  # until the second sample is the one that is lost
        lost = run([*arguments, str(broken)], CUEMU_LOSE_AFTER=str(launches), **here)
        assert lost.returncode == 4, (lost.returncode, lost.stderr)
        if "samples are kept" in lost.stderr:
            break
    for word in ("sample ", "layer 0", "key head", "work is lost", "1 of 3 samples are kept"):
        assert word in lost.stderr, (word, lost.stderr)
    assert not broken.exists() and pathlib.Path(f"{broken}.parts", "000.h5").exists()
    done = run([*arguments, str(broken)], **here)
    assert done.returncode == 0, done.stderr
    assert broken.read_bytes() == whole.read_bytes()
    return 1


checked = 0
assert absent("cuda", ["cannot be opened", "/nonexistent.so", "--backend cpu"],
              ATTNSTRESS_CUDA_MODULE="/nonexistent.so") == "cpu"
assert absent("cublas", ["is not the GPU module", "libm.so.6"], ATTNSTRESS_CUDA_MODULE="libm.so.6") == "cpu"
checked += 2

with tempfile.TemporaryDirectory() as folder:
    capture = str(pathlib.Path(folder, "small.h5"))
    made = run(["synth", "-o", capture, "--samples", "1", "--layers", "1", "--keys", "200", "--rope", "half"])
    assert made.returncode == 0, made.stderr
    refused = run(["verify", capture, "--backend", "cuda"], ATTNSTRESS_CUDA_MODULE="/nonexistent.so")
    assert refused.returncode == 4 and "cannot be opened" in refused.stderr, refused
    checked += 1
    if os.path.exists(module):
        found, auto = backends(ATTNSTRESS_CUDA_MODULE=module)
        if not found["cuda"]["available"]:
            assert "no CUDA device" in found["cuda"]["reason"] and auto == "cpu", found["cuda"]
            refused = run(["verify", capture, "--backend", "cuda"], ATTNSTRESS_CUDA_MODULE=module)
            assert refused.returncode == 4 and "nvidia-smi" in refused.stderr, refused
        checked += 1
    if os.path.exists(emulated):
        here = {"ATTNSTRESS_CUDA_MODULE": emulated}
        found, auto = backends(**here)
        assert auto == "cuda" and found["cublas"]["available"], (auto, found)
        assert absent("cuda", ["no CUDA device", "cudaErrorNoDevice"], CUEMU_DEVICES="0", **here) == "cpu"
        assert absent("cuda", ["too old", "7.5", "8.0"], CUEMU_CAPABILITY="75", **here) == "cpu"
        assert absent("cublas", ["cuBLAS library is missing"], CUEMU_CUBLAS="0", **here) == "cuda"
        for backend in ("cuda", "cublas"):
            done = run(["verify", capture, "--backend", backend], **here)
            assert done.returncode == 0, (done.stdout[-3000:], done.stderr)
            assert "emulated device" in done.stdout, done.stdout[:500]
        wide = str(pathlib.Path(folder, "wide.h5"))
        made = run(["synth", "-o", wide, "--samples", "1", "--layers", "1", "--keys", "50", "--d-qk", "264"])
        assert made.returncode == 0, made.stderr
        done = run(["verify", wide], **here) # auto passes over a device that does not take such heads
        assert done.returncode == 0 and "backend cpu" in done.stdout, (done.stdout[:500], done.stderr)
        refused = run(["verify", wide, "--backend", "cuda"], **here)
        assert refused.returncode == 3 and "at most 256" in refused.stderr, refused
        lost = run(["verify", capture, "--backend", "cuda"], CUEMU_LOSE_AFTER="3", **here)
        assert lost.returncode == 4 and "work is lost" in lost.stderr, (lost.returncode, lost.stderr)
        checked += 9
        checked += lost_in_a_run(folder, here)
print(f"{checked} passed, 0 failed")
