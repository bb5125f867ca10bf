"""Files of format version 1, made once and kept: every later build reads them to the same numbers;
what a newer minor adds is ignored, a newer major is refused.

usage: test_format.py PROGRAM FOLDER PLUGIN_FOLDER PYTHON_FOLDER
       test_format.py --describe FOLDER     prints expected.json of the files in FOLDER"""
import hashlib
import io
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tarfile
import tempfile

import h5py
import numpy as np

TOLERANCE = 1e-5  # float32 numbers of the kernel against explain's double ones


def digest(values, kind):
    if kind == "text":
        raw = "\n".join(values).encode()
    else:
        array = np.asarray(values, dtype=kind)
        if kind == "<f4":
            array = np.where(np.isnan(array), np.float32("nan"), array).astype("<f4")
        raw = array.tobytes()
    return hashlib.sha256(raw).hexdigest()[:24]


def kind_of(dataset):
    if h5py.check_string_dtype(dataset.dtype):
        return "text"
    return "<f4" if dataset.dtype.kind == "f" else "<i8"


def values_of(dataset):
    if kind_of(dataset) == "text":
        return [str(v) for v in np.atleast_1d(dataset.asstr()[()]).ravel()]
    return np.atleast_1d(dataset[()]).ravel()


def describe(path):
    """{name: [kind, shape, digest]} of every variable that inspect can print, read by h5py."""
    with h5py.File(path) as f:
        names = [n for n in f if isinstance(f[n], h5py.Dataset) and f[n].dtype != np.int8
                 and not (f[n].attrs.get("dtype") in (b"bool", "bool"))]
        return {n: [kind_of(f[n]), list(f[n].shape), digest(values_of(f[n]), kind_of(f[n]))]
                for n in names if n != "suite"}


if sys.argv[1] == "--describe":
    root = pathlib.Path(sys.argv[2])
    with h5py.File(root / "result.h5") as f:
        made = {"version": f.attrs["tool_version"], "git": f.attrs["tool_git"],
                "format_version": int(f.attrs["format_version"])}
    print(json.dumps({"made_by": made, "result.h5": describe(root / "result.h5"),
                      "part.h5": describe(root / "part.h5")}, indent=1))
    sys.exit(0)

program, here, plugin, python = (os.path.abspath(a) for a in sys.argv[1:5])
expected = json.loads((pathlib.Path(here) / "expected.json").read_text())
folder = pathlib.Path(tempfile.mkdtemp(prefix="attnstress-format-"))
os.environ["HDF5_PLUGIN_PATH"] = plugin
with tarfile.open(pathlib.Path(here) / "files.tar.xz") as archive:
    archive.extractall(folder)


def cli(*words, status=0):
    done = subprocess.run([program, *words], cwd=folder, capture_output=True, text=True, timeout=120)
    assert done.returncode == status, (words, done.returncode, done.stderr)
    return done


def inspected(name, variable, kind, extent):
    text = cli("inspect", name, "--values", variable).stdout
    if kind == "text":
        return text.split("\n")[:-1]
    values = np.loadtxt(io.StringIO(text), dtype="<f4" if kind == "<f4" else "<i8", ndmin=1)
    assert values.size == int(np.prod(extent)), (variable, values.shape, extent)
    return values.ravel()


def the_files_are_the_ones_that_were_made():
    assert expected["made_by"]["format_version"] == 1
    for name in ("result.h5", "part.h5"):
        assert describe(folder / name) == expected[name], name


def inspect_prints_the_same_numbers():
    assert "synth-001" in cli("inspect", "capture.h5").stdout
    assert json.loads(cli("inspect", "capture.h5", "--json").stdout)["layers"][1]["sink"]
    assert "suite_name: format-1" in cli("inspect", "result.h5").stdout
    for name in ("result.h5", "part.h5"):
        for variable, (kind, extent, wanted) in expected[name].items():
            if len(extent) < 2 and variable not in ("perturbation", "dose", "status", "span"):
                continue  # all of them are known from h5py above
            got = digest(inspected(name, variable, kind, extent or [1]), kind)
            assert got == wanted, (name, variable)


def explain_computes_what_is_stored():
    with h5py.File(folder / "result.h5") as f:
        spans = [str(s) for s in f["span"].asstr()[()]]
        shift, tv = f["log_mass_shift"][()], f["tv"][()]
        status = f["status"][()]
    compared = 0
    for case in np.flatnonzero(status == 0)[::3]:
        for layer, head in ((0, 1), (1, 0)):
            told = json.loads(cli("explain", "result.h5", "--case", str(case), "--layer", str(layer),
                                  "--head", str(head), "--probe", "0", "--json").stdout)
            assert abs(told["tv"] - tv[case, layer, head, 0]) < TOLERANCE
            for span in told["spans"]:
                stored = shift[case, layer, head, 0, spans.index(span["span"])]
                if span["log_mass_shift"] is not None and np.isfinite(stored):
                    assert abs(span["log_mass_shift"] - stored) < TOLERANCE, (case, span, stored)
                    compared += 1
    assert compared > 30, compared


def compare_report_and_merge_take_them():
    told = json.loads(cli("compare", "result.h5", "result.h5", "--json").stdout)
    assert told, told
    cli("report", "result.h5", "-o", "report.html")
    assert "format-1" in (folder / "report.html").read_text()
    cli("merge", "part.h5", "-o", "joined.h5", "--partial", status=2)
    joined = describe(folder / "joined.h5")
    for variable, (kind, extent, wanted) in expected["part.h5"].items():
        if variable in joined and variable not in ("case", "sample_index"):
            assert joined[variable] == [kind, extent, wanted], variable


def this_build_computes_the_same_numbers():
    cli("run", "suite.yaml", "-o", "again.h5")
    with h5py.File(folder / "result.h5") as old, h5py.File(folder / "again.h5") as new:
        for name in ("log_mass_shift", "tv", "entropy", "output_change", "base_mass"):
            np.testing.assert_allclose(new[name][()], old[name][()], rtol=0, atol=TOLERANCE,
                                       err_msg=name)
    done = cli("run", "suite.yaml", "-o", "result.h5", status=3 if differs() else 0)
    if differs():
        assert "of another run" in done.stderr, done.stderr


def differs():
    """Another build's parts and results are never continued: their bits might differ."""
    with h5py.File(folder / "result.h5") as old, h5py.File(folder / "again.h5") as new:
        return any(np.any(old.attrs[n] != new.attrs.get(n)) for n in old.attrs
                   if n not in ("gates",))


def python_reads_them():
    sys.path.insert(0, python)
    import attnstress
    ds = attnstress.open(folder / "result.h5")
    assert digest(ds["log_mass_shift"].values, "<f4") == expected["result.h5"]["log_mass_shift"][2]
    assert list(ds["span"].values)[0] == "gold"


def altered(name, change):
    copy = folder / ("altered-" + name)
    shutil.copy(folder / name, copy)
    with h5py.File(copy, "r+") as f:
        change(f)
    return copy.name


def add_what_a_minor_may_add(f):
    f.attrs["format_minor"] = 9
    f.attrs["new_attribute"] = "unknown today"
    f["new_axis"] = np.arange(6.0)  # an axis of its own: every axis has a scale
    f["new_axis"].make_scale("new_axis")
    f["new_variable"] = np.arange(6.0)
    f["new_variable"].dims[0].attach_scale(f["new_axis"])
    for name in list(f):
        f[name].attrs["new_word"] = "unknown today"
    if "layers" in f:
        f["layers/0"].attrs["new_number"] = 3.5
        f["layers/0/new_tensor"] = np.zeros((2, 3))
        f["samples/0/new_tensor"] = np.zeros(4)
        f["samples/0"].attrs["new_word"] = "unknown today"


def a_newer_minor_is_read():
    capture = altered("capture.h5", add_what_a_minor_may_add)
    assert "synth-001" in cli("inspect", capture).stdout
    cli("run", "suite.yaml", "--capture", capture, "-o", "minor.h5")
    with h5py.File(folder / "minor.h5") as new, h5py.File(folder / "again.h5") as old:
        assert np.array_equal(new["tv"][()], old["tv"][()], equal_nan=True)
    result = altered("result.h5", add_what_a_minor_may_add)
    wanted = expected["result.h5"]["log_mass_shift"]
    got = inspected(result, "log_mass_shift", wanted[0], wanted[1])
    assert digest(got, "<f4") == wanted[2]
    cli("report", result, "-o", "report.html")
    cli("compare", "result.h5", result)
    cli("explain", result, "--case", "0", "--layer", "1", "--head", "1")
    import attnstress
    ds = attnstress.open(folder / result)
    assert ds.attrs["new_attribute"] == "unknown today"
    assert digest(ds["log_mass_shift"].values, "<f4") == wanted[2]


def another_major_is_refused_with_a_sentence():
    def later(f):
        f.attrs["format_version"] = 2
    capture, result = altered("capture.h5", later), altered("result.h5", later)
    part = altered("part.h5", later)
    for words in (("inspect", capture), ("run", "suite.yaml", "--capture", capture, "-o", "x.h5"),
                  ("verify", capture), ("report", result, "-o", "x.html"),
                  ("compare", "result.h5", result),
                  ("explain", result, "--case", "0", "--layer", "1", "--head", "1"),
                  ("run", "suite.yaml", "-o", result, "--force")):
        words = [str(w) for w in words]
        told = cli(*words, status=3).stderr
        assert "format_version 2" in told and "install a newer attnstress" in told, (words, told)
        assert "altered-" in told, told
    parts = folder / "parts.h5.parts"
    parts.mkdir()
    shutil.copy(folder / part, parts / "000.h5")
    assert cli("merge", "parts.h5.parts", "-o", "x.h5", "--partial", status=3).stderr
    assert (parts / "000.h5").exists() and not (folder / "x.h5").exists()
    import attnstress
    try:
        attnstress.open(folder / result)
    except attnstress.Unsupported as fault:
        assert "format_version 2" in str(fault)
    else:
        raise AssertionError("a newer major was opened")


tests = [f for name, f in list(globals().items())
         if callable(f) and getattr(f, "__module__", "") == "__main__"
         and f.__code__.co_argcount == 0 and name not in ("cli", "differs")]
try:
    for test in tests:
        test()
        print(test.__name__, flush=True)
finally:
    shutil.rmtree(folder, ignore_errors=True)
