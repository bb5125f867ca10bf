"""Keys and values of a head that memory does not hold go through a file on a disk.

usage: check_scratch.py PROGRAM

A head of 131,072 keys (64 MiB of keys and values in two float32 tensors) under --memory: the numbers are
those of a run with memory enough, to the last bit; `plan` names the folder; what cannot be is said."""
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

program = os.path.abspath(sys.argv[1])
folder = pathlib.Path(tempfile.mkdtemp(prefix="attnstress-scratch-", dir="/var/tmp"))
(folder / "suite.yaml").write_text("""suite: scratch
version: 1
seed: 1
captures: [capture.h5]
spans: {target: gold}
perturbations:
  - {name: hot, kind: temperature, tau: 2}
  - {name: near, kind: distractors, count: 16, positions: [overlay, shift, move]}
  - {name: other, kind: payload_swap}
""")


def cli(*words, **extra):
    env = {**os.environ, **extra.pop("env", {})}
    return subprocess.run([program, *words], cwd=folder, capture_output=True, text=True, timeout=250,
                          env=env, **extra)


def ends(done, status, *words):
    assert done.returncode == status, (done.returncode, done.stderr)
    for word in words:
        assert word in done.stderr, (word, done.stderr)


def main():
    ends(cli("synth", "-q", "-o", "capture.h5", *"--keys 131072 --samples 1 --layers 1 --q-heads 1 --kv-heads 1 "
             "--probes 2 --d-qk 64 --d-v 64 --dtype float32".split()), 0)
    ends(cli("run", "suite.yaml", "-q", "-o", "whole.h5"), 0)

    # The least that `run` takes is what it asks for when it gets less.
    done = cli("plan", "suite.yaml", "--memory", "20M")
    ends(done, 4, "keys and values in a file", "Give --memory")
    least = re.search(r"Give --memory (\d+)M", done.stderr).group(1) + "M"
    plan = cli("plan", "suite.yaml", "--memory", least, "--scratch", ".")
    ends(plan, 0)
    assert "through a file of 64.0 MiB in ." in plan.stdout, plan.stdout
    stated = json.loads(cli("plan", "suite.yaml", "--memory", least, "--scratch", ".", "--json").stdout)
    assert stated["memory"]["scratch"] == 64 << 20, stated["memory"]

    for n in ("1", "2"):
        ends(cli("run", "suite.yaml", "-q", "-o", f"least{n}.h5", "--memory", least, "--scratch", ".",
                 "--threads", n), 0)
        assert (folder / f"least{n}.h5").read_bytes() == (folder / "whole.h5").read_bytes(), n
    assert not list(folder.glob("attnstress-*")), "the file is left"

    # What cannot be is said before anything is read, and nothing is written.
    words = ("run", "suite.yaml", "-o", "no.h5", "--memory", least)
    ends(cli(*words, "--scratch", "nowhere"), 4, "nowhere", "No such file", "--scratch")
    ends(cli(*words, env={"TMPDIR": str(folder / "gone")}), 4, "gone", "--scratch")
    ends(cli(*words, "--scratch", "/dev/shm"), 4, "/dev/shm", "kept in memory")
    limited = subprocess.run(["bash", "-c", 'ulimit -f 20000; exec "$@"', "_", program, *words, "--scratch", "."],
                             cwd=folder, capture_output=True, text=True, timeout=100)
    ends(limited, 4, "File too large", "--scratch")
    assert not (folder / "no.h5").exists() and not list(folder.glob("attnstress-*"))


try:
    main()
finally:
    shutil.rmtree(folder, ignore_errors=True)
