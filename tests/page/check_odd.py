"""report, and compare with another result, on results that were tampered with or lack something: a
sentence, never a crash or a hang.

usage: check_odd.py PROGRAM RESULT OTHER FOLDER
"""
import pathlib
import shutil
import subprocess
import sys
import tempfile

import h5py
import numpy as np

program, result, other, folder = sys.argv[1], sys.argv[2], sys.argv[3], pathlib.Path(sys.argv[4])
failures = []


def replace(file, name, shape):
    del file[name]
    file.create_dataset(name, data=np.zeros(shape, np.float32))


def longer(name):
    return lambda f: replace(f, name, (*f[name].shape[:-1], f[name].shape[-1] * 50))


def shorter(name):
    return lambda f: replace(f, name, f[name].shape[:-1])


def set_all(name, value):
    def change(f):
        f[name][...] = value
    return change


def drop(*names):
    def change(f):
        for name in names:
            del f[name]
    return change


def fill(value):
    def change(f):
        for name in f:
            if f[name].dtype == np.float32 and f[name].ndim > 3:
                f[name][...] = np.full(f[name].shape, value, np.float32)
    return change


REFUSED = 3
cases = [
    ("delta_norm with more parts", longer("delta_norm"), REFUSED, "delta_norm has another shape"),
    ("delta_norm without parts", shorter("delta_norm"), REFUSED, "delta_norm has another shape"),
    ("output_change with more probes", longer("output_change"), REFUSED, "output_change has another shape"),
    ("mass with more spans", longer("mass"), REFUSED, "mass has another shape"),
    ("base_mass with more spans", longer("base_mass"), REFUSED, "base_mass has another shape"),
    ("a sample index past the samples", set_all("sample_index", 10**15), REFUSED, "none of"),
    ("a sample index just past them", set_all("sample_index", 9999), REFUSED, "none of"),
    ("no log_mass_shift", drop("log_mass_shift"), REFUSED, "metrics.keep"),
    ("no output metrics", drop("delta_norm", "output_change", "mass"), 0, ""),
    ("no case ran", set_all("status", 1), 0, ""),
    ("no number at all", fill(np.nan), 0, ""),
    ("infinities alone", fill(-np.inf), 0, ""),
    ("a pair past the cases", set_all("pair_case", 10**12), 0, ""),
    ("a dose without end", set_all("dose", np.inf), 0, ""),
]
for what, change, status, words in cases:
    odd = folder / "odd.h5"
    shutil.copy(result, odd)
    with h5py.File(odd, "r+") as file:
        file["log_mass_shift"][:1]  # loads the filter
        change(file)
    done = subprocess.run([program, "report", odd, "-o", folder / "odd.html"], capture_output=True, text=True,
                          timeout=60)
    if done.returncode != status or words not in done.stderr:
        failures.append(f"{what}: exit status {done.returncode}, should be {status}: {done.stderr}")
    for pair in ((other, odd), (odd, other)):
        done = subprocess.run([program, "compare", *pair], capture_output=True, text=True, timeout=60)
        words = ("attnstress: error", done.stderr) if done.returncode == REFUSED else ("verdict:", done.stdout)
        if done.returncode not in (0, 1, 2, REFUSED) or words[0] not in words[1]:
            failures.append(f"{what}, compare: exit status {done.returncode}: {done.stderr}")
with tempfile.TemporaryDirectory() as scratch:  # a result that is called as its capture is
    named = pathlib.Path(scratch) / "recall-long.h5"
    shutil.copy(result, named)
    done = subprocess.run([program, "report", named], capture_output=True, text=True, timeout=60)
    if done.returncode != 0 or not named.with_suffix(".html").exists():
        failures.append(f"named as its capture: exit status {done.returncode}: {done.stderr}")
for allowed in ([], ["--allow-missing", "*"]):  # a page says what compare with these words says
    shutil.copy(result, odd)
    with h5py.File(odd, "r+") as file:
        file["status"][:3] = 1
    subprocess.run([program, "report", odd, "--against", other, *allowed, "-o", folder / "odd.html"], check=True,
                   capture_output=True, timeout=60)
    says = "were not allowed by name" in (folder / "odd.html").read_text(encoding="utf-8")
    if says == bool(allowed):
        failures.append(f"{allowed}: the page says {says} of cases without a partner")
for size in (0, 1000, 100_000):
    odd.write_bytes(pathlib.Path(result).read_bytes()[:size])
    done = subprocess.run([program, "report", odd, "-o", folder / "odd.html"], capture_output=True, text=True,
                          timeout=60)
    if done.returncode != REFUSED or "odd.h5" not in done.stderr:
        failures.append(f"cut to {size} bytes: exit status {done.returncode}: {done.stderr}")
print("\n".join(failures) or f"{len(cases) + 6} odd results are drawn or refused as they should be")
sys.exit(1 if failures else 0)
