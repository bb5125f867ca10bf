"""Every call to another library fails once: the program says so and leaves no half file.

usage: test_errors.py PROGRAM_WITH_CALLS_C PROGRAM PLUGIN_FOLDER [N]; N stacks are tried, spread over
the commands; ATS_ERRORS=all tries every call site, ATS_ERRORS=COMMAND those of one command.

The stacks of a command's calls (calls.c) are listed first. Those are tried that hold a call site, of
the failing call or of one that leads to it, that no tried stack of this process held yet."""
import os
import random
import re
import shutil
import subprocess
import sys
import tempfile
import pathlib

program, plain, plugin = map(os.path.abspath, sys.argv[1:4])
limit = int(sys.argv[4]) if len(sys.argv) > 4 else 60
wish = os.environ.get("ATS_ERRORS", "")
root = pathlib.Path(__file__).resolve().parents[2]
os.environ.update(HDF5_PLUGIN_PATH=plugin, OMP_WAIT_POLICY="passive", OMP_NUM_THREADS="1",
                  ASAN_OPTIONS="detect_leaks=0:allocator_may_return_null=1", NO_COLOR="1",
                  PYTHONDONTWRITEBYTECODE="1")
for name in ("GITHUB_ACTIONS", "GITHUB_STEP_SUMMARY"):
    os.environ.pop(name, None)
folder = pathlib.Path(tempfile.mkdtemp(prefix="attnstress-errors-"))
log = folder / "calls.log"

# What may fail without a word: the answer then is a guess that is marked, or a wish is not granted.
OPTIONAL = {"gethostname", "sysconf", "getrusage", "sched_getaffinity", "sigaction", "readlink", "access",
            "H5Pset_obj_track_times", "H5Pset_attr_creation_order", "H5Pset_link_creation_order"}
COMMANDS = {
    "plan": "plan suite.yaml --json",
    "run": "run suite.yaml -o out.h5 --summary out.json --metrics-file out.prom",
    "run json": "run suite.yaml -o out.h5 --json --log-format json --set perturbations.near.count=1",
    "run again": "run suite.yaml -o base.h5 -q",
    "merge": "merge shards.h5.parts -o out.h5 --json",
    "gc": "gc here --older-than 0 --dry-run",
    "compare": "compare base.h5 cand.h5 --junit out.xml --resamples 100",
    "compare json": "compare base.h5 cand.h5 --json --resamples 100",
    "compare exact": "compare base.h5 base.h5",
    "explain": "explain base.h5 --case 3 --layer 1 --head 0 --json --rows",
    "explain text": "explain base.h5 --case 9 --layer 0 --head 1",
    "report": "report base.h5 -o out.html --capture cap.h5",
    "report against": "report base.h5 --against cand.h5 -o out.html",
    "verify": "verify cap.h5 --json",
    "diagnose": "diagnose cap.h5 --contributions --json",
    "diagnose text": "diagnose cap.h5 --samples 1",
    "fidelity": "fidelity pairs.h5 --json",
    "inspect": "inspect cap.h5 --json",
    "inspect result": "inspect base.h5",
    "inspect values": "inspect base.h5 --values log_mass_shift",
    "inspect old": "inspect old.h5",
    "synth": "synth -o out.h5 --truth out.json --keys 64 --samples 1 --layers 1 --rope half --w-o",
    "import safetensors": "import header.yaml tensors.safetensors -o out.h5",
    "import npy": "import header.yaml npy/layers.0.q.npy npy/layers.0.k.npy npy/layers.0.v.npy -o out.h5",
    "import npz": "import header.yaml tensors.npz -o out.h5",
    "doctor": "doctor",
    "doctor json": "doctor --json",
    "schema": "schema",
}
# Tried whole each time: a failure while a suite is read was once forgotten by the next success.
ALWAYS = {"plan": "ats_arena_strdup"}
OUTPUTS = ("out.h5", "out.json", "out.prom", "out.xml", "out.html")


def run(words, program=plain, fail=None, listing=False):
    env = dict(os.environ)
    if fail or listing:
        env["ATS_ERRORS_LOG"] = str(log)
    if fail:
        env["ATS_ERRORS_FAIL"] = fail
    return subprocess.run([program, *words.split()], cwd=folder, capture_output=True, text=True, env=env,
                          timeout=120, errors="replace")


def must(words):
    done = run(words)
    assert done.returncode == 0, (words, done.returncode, done.stderr)


def clear():
    for path in folder.glob("out.*"):
        shutil.rmtree(path) if path.is_dir() else path.unlink()
    log.unlink(missing_ok=True)


def prepare():
    sys.path.insert(0, str(root / "tests" / "errors"))
    import inputs
    shutil.copy(root / "tests" / "errors" / "suite.yaml", folder)
    small = ("--samples 2 --layers 2 --keys 96 --probes 2 --d-qk 16 --d-v 8 --q-heads 2 --kv-heads 1"
             " --rope half --w-o --sink")
    must(f"synth -o cap.h5 {small}")
    must(f"synth -o other.h5 {small} --gold-mass 0.3")
    must("run suite.yaml -q -o base.h5")
    done = run("run suite.yaml -q -o cand.h5 --capture other.h5")
    assert done.returncode == 0, done.stderr
    for i in (1, 2):
        must(f"run suite.yaml -q -o shards.h5 --shard {i}/2")
    (folder / "here").mkdir()
    shutil.copytree(folder / "shards.h5.parts", folder / "here" / "shards.h5.parts")
    inputs.write(folder)


def digest():
    return {p.relative_to(folder): p.read_bytes() for p in folder.rglob("*")
            if p.is_file() and p != log and not p.name.startswith("out.") and ".run.jsonl" not in p.name
            and ".lock" not in p.name}


def stacks(words):
    """(status, stdout, outputs, [(hash, call, sites)]) of a run in which nothing fails."""
    clear()
    done = run(words, program, listing=True)
    found = []
    for line in log.read_text().splitlines():
        hash_, call, *sites = line.split()
        found.append((hash_, call, [(call, sites[0])] + [("", s) for s in sites[1:]] if sites else [(call, "")]))
    return done, {n: (folder / n).read_bytes() for n in OUTPUTS if (folder / n).exists()}, found


def judge(name, call, words, whole, whole_files, done):
    """What is wrong with the answer to a failed call, or None."""
    if done.returncode < 0 or done.returncode > 5 or "Sanitizer" in done.stderr or "runtime error" in done.stderr:
        return f"status {done.returncode}: {done.stderr[-1500:]}"
    if done.returncode == 5 and not re.match("H5(P|T|S|Z)|ZSTD", call):
        return f"an internal error: {done.stderr[-400:]}"
    if done.returncode >= 3:
        if not re.search(r"error", done.stderr):
            return f"status {done.returncode} without a sentence: {done.stderr!r}"
        for n in ("out.h5", "out.html"):
            if (folder / n).exists() and (folder / n).read_bytes() != whole_files.get(n):
                return f"{n} is there, and not whole, after status {done.returncode}"
        return None
    if done.returncode not in (0, 1, 2):
        return f"status {done.returncode}"
    if call in OPTIONAL or done.returncode != whole.returncode:
        return None
    for n in ("out.h5", "out.html"):
        if n in whole_files and not (folder / n).exists():
            return f"status {done.returncode}, but {n} is missing: {done.stderr[-300:]}"
    return None


def main():
    prepare()
    before = digest()
    tried, wrong, covered = 0, [], set()
    names = [n for n in COMMANDS if wish in ("", "all") or n.startswith(wish)]
    chance = random.Random(3)
    for name in names:
        words = COMMANDS[name]
        whole, whole_files, found = stacks(words)
        assert whole.returncode in (0, 1, 2), (name, whole.returncode, whole.stderr)
        chance.shuffle(found)
        chosen = []
        for hash_, call, sites in found:
            if not covered.issuperset(sites):
                chosen.append((hash_, call, sites))
                covered.update(sites)
        if not wish:
            fixed = [c for c in chosen if c[1] == ALWAYS.get(name)]
            chosen = fixed + chosen[: max(1, limit // len(names))]
        for hash_, call, sites in chosen:
            clear()
            done = run(words, program, fail=hash_)
            if "fired" not in (log.read_text() if log.exists() else ""):
                continue
            tried += 1
            fault = judge(name, call, words, whole, whole_files, done)
            if fault:
                where = subprocess.run(["addr2line", "-e", program, "-f", "-s", *(s for _, s in sites[:6])],
                                       capture_output=True, text=True).stdout.split()
                wrong.append(f"{name}: {call} {' '.join(where)}: {fault}")
                print(wrong[-1], flush=True)
        print(f"{name}: {len(found)} stacks, {len(chosen)} tried", flush=True)
    after = digest()
    for path in before:
        assert after.get(path) == before[path], f"{path} was changed by a command that failed"
    print(f"{tried} calls failed, {len(wrong)} wrong answers")
    return 1 if wrong else 0


try:
    status = main()
finally:
    shutil.rmtree(folder, ignore_errors=True)
sys.exit(status)
