"""report on a model of many heads: under 3 MB, and it says what it leaves out.

usage: check_wide.py PROGRAM FOLDER
"""
import pathlib
import subprocess
import sys

program, folder = sys.argv[1], pathlib.Path(sys.argv[2])
SUITE = """suite: wide
version: 1
seed: 7
captures: [wide one.h5]
perturbations:
  - {name: near, kind: duplicates, positions: overlay, copies: [1, 4]}
  - {name: slide, kind: mask_window, pattern: slide, width: 8, at: [0, 0.5]}
metrics: {keep: [mass, log_mass_shift, sink_mass, distractor_tolerance, law_log_mass_shift, inserted_log_odds]}
"""


def run(*arguments):
    return subprocess.run([program, *arguments], cwd=folder, capture_output=True, text=True, check=True)


(folder / "wide.yaml").write_text(SUITE)
run("synth", "-o", "wide one.h5", "--samples", "1", "--layers", "48", "--q-heads", "64", "--kv-heads", "4", "--keys",
    "64", "--probes", "1", "--d-qk", "8", "--d-v", "8", "--distractors", "1", "-q")
run("run", "wide.yaml", "-o", "wide.h5", "--force", "--quiet")
run("report", "wide.h5", "-o", "wide.html")
page = (folder / "wide.html").read_text()
assert len(page) < 3 << 20, len(page)
assert "48 layers of 64 heads are too many for tooltips" in page
assert page.count("<title>layer") == 0 and page.count('<g class="runs"') >= 4, page.count('<g class="runs"')
assert page.count("<path class") >= 4
assert "the spans of sample" in page, "a capture whose name holds a blank was not found"
run("report", "wide.h5", "--against", "wide.h5", "-o", "pair.html")
assert (folder / "pair.html").stat().st_size < 3 << 20
print(f"{len(page)} bytes")
