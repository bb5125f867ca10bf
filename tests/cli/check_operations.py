"""What a run tells machines: the JSON log, the summary, metrics for node_exporter, the journal.

usage: check_operations.py PROGRAM SOURCE_FOLDER"""
import json
import os
import pathlib
import re
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time

from prometheus_client.parser import text_string_to_metric_families

program, source = os.path.abspath(sys.argv[1]), pathlib.Path(sys.argv[2])
folder = pathlib.Path(tempfile.mkdtemp(prefix="attnstress-operations-"))
shutil.copy(source / "examples" / "captures" / "recall-short.h5", folder / "capture.h5")
shutil.copy(source / "tests" / "faults" / "suite.yaml", folder / "suite.yaml")
FAILING = (folder / "suite.yaml").read_text().replace("min: -50", "min: 3")
(folder / "failing.yaml").write_text(FAILING)


def cli(*words, folder=folder):
    return subprocess.run([program, *words], cwd=folder, capture_output=True, timeout=300)


def lines(done):
    """Every line of stderr is one object with the fields that each must have."""
    raw = done.stderr.decode("ascii")
    records = [json.loads(line) for line in raw.splitlines()]
    for record in records:
        assert {"time", "level", "event", "message"} <= set(record), record
        assert record["level"] in {"error", "warning", "info", "debug"}, record
        assert record["time"].endswith("Z") and "T" in record["time"]
    assert records and records[-1]["event"] == "end", records[-1:]
    assert records[-1]["exit_status"] == done.returncode
    return records


def metrics(name):
    """{(metric, rest of the labels): value}; the parser refuses what is not the format."""
    text = (folder / name).read_text()
    promtool = shutil.which("promtool")
    if promtool:
        checked = subprocess.run([promtool, "check", "metrics"], input=text, text=True,
                                 capture_output=True)
        assert checked.returncode == 0, checked.stdout + checked.stderr
    found = {}
    for family in text_string_to_metric_families(text):
        assert family.documentation and family.type == "gauge", family
        assert family.samples, family.name
        for sample in family.samples:
            labels = dict(sample.labels)
            assert labels.pop("command") and labels.pop("suite"), sample
            if family.name != "attnstress_info":
                key = (family.name.removeprefix("attnstress_"), *labels.values())
                assert key not in found, key
                found[key] = sample.value
    return found


def the_log_is_an_object_a_line():
    assert cli("run", "suite.yaml", "-o", "log.h5", "--log-format", "json", "-q").stderr == b""
    (folder / "log.h5").unlink()
    done = cli("run", "suite.yaml", "-o", "log.h5", "--log-format=json", "-v")
    records = lines(done)
    samples = [r for r in records if r["event"] == "sample"]
    assert [r["part"] for r in samples] == [0, 1, 2, 3] and samples[0]["sample"], samples
    assert sum(r["ok"] for r in samples) == 56 and all(r["failed"] == 0 for r in samples)
    plan = next(r for r in records if r["event"] == "plan")
    assert plan["cases"] == 56 and plan["samples"] == 4 and plan["backend"]
    assert any(r["level"] == "debug" and r["message"].startswith("time: read") for r in records)
    summary = next(r for r in records if r["event"] == "summary")["summary"]
    assert summary["ok"] == 56 and summary["exit_status"] == 0
    assert b"gate 'some is left' passed" in done.stdout  # data stays on stdout


def what_fails_is_told_in_the_same_form():
    for words, status in ((("run", "none.yaml"), 3), (("run", "--no-such"), 3), (("frobnicate",), 3),
                          (("inspect", "suite.yaml"), 3), ((), 3),
                          (("merge", "none.parts", "-o", "m.h5"), 4)):
        done = cli(*words, "--log-format", "json")
        assert done.returncode == status, (words, done.returncode, done.stderr)
        if words:
            errors = [r for r in lines(done) if r["level"] == "error"]
            assert errors and errors[0]["code"].startswith("ATS_E_") and errors[0]["message"], errors
    done = cli("run", "suite.yaml", "--log-format", "xml")
    assert done.returncode == 3 and b"must be text or json" in done.stderr, done.stderr


def no_name_breaks_a_line():
    """Quotes, line feeds, escapes and bytes that are no UTF-8 in names."""
    name = b"odd \"\\ \x1b[31m\n\xff\xc3\x28.yaml"
    path = os.path.join(os.fsencode(folder), name)
    pathlib.Path(os.fsdecode(path)).write_text("suite: [\n")
    done = subprocess.run([os.fsencode(program), b"run", name, b"--log-format", b"json", b"--summary",
                           b"odd.json", b"--metrics-file", b"odd.prom"], cwd=folder,
                          capture_output=True, timeout=60)
    assert done.returncode == 3, done.stderr
    message = next(r for r in lines(done) if r["event"] == "error")["message"]
    assert "\x1b[31m\n\ufffd\ufffd(" in message, message
    assert json.loads((folder / "odd.json").read_text())["error"] == message
    families = list(text_string_to_metric_families((folder / "odd.prom").read_text()))
    assert "\n\ufffd\ufffd(" in families[0].samples[0].labels["suite"], families[0]
    assert not any("last_success" in f.name for f in families)


def the_plan_says_what_takes_how_long():
    """The parts make up the whole, and what grows with the variants, the threads and the backend does."""
    def plan(*words):
        found = json.loads(cli("plan", "suite.yaml", "--json", *words).stdout)
        assert set(found["time"]) == {"start", "read", "build", "evaluate", "write"}
        assert all(seconds > 0 for seconds in found["time"].values()), found["time"]
        assert abs(sum(found["time"].values()) - found["seconds"]) < 1e-9
        return found["time"]
    one = plan("--threads", "1")
    slow = plan("--threads", "1", "--backend", "reference")
    assert slow["read"] == one["read"] and slow["evaluate"] > one["evaluate"], (slow, one)
    two = plan("--threads", "2")
    assert two["start"] == one["start"] and abs(two["read"] / one["read"] - 0.5) < 1e-9
    text = cli("plan", "suite.yaml", "--threads", "1").stdout.decode()
    said = re.search(r"time about \d+ ms on 1 thread: reading \d+ ms, building edits \d+ ms, "
                     r"evaluating \d+ ms, measuring and writing \d+ ms\n", text)
    assert said, text


def the_summary_is_one_object_everywhere():
    done = cli("run", "suite.yaml", "-o", "sum.h5", "--json", "--summary", "sum.json")
    assert done.returncode == 0 and done.stdout.decode() == (folder / "sum.json").read_text()
    summary = json.loads(done.stdout)
    assert (summary["ended_as"], summary["verdict"], summary["error"]) == ("finished", "passed", None)
    assert (summary["planned"], summary["ok"], summary["skipped"], summary["failed"]) == (56, 56, 0, 0)
    assert (summary["samples"], summary["kept"], summary["computed"]) == (4, 0, 4)
    assert summary["result"] == "sum.h5"
    assert summary["bytes"] == (folder / "sum.h5").stat().st_size
    phases = summary["phases"]
    assert set(phases) == {"plan", "read", "build", "evaluate", "measure", "write", "join"}
    assert all(seconds >= 0 for seconds in phases.values())
    assert phases["evaluate"] > 0 and phases["write"] > 0 and phases["join"] > 0
    assert sum(phases.values()) <= summary["seconds"] * 1.01
    peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * 1024
    assert 1e6 < summary["peak_memory_bytes"] <= peak + 4096, (summary["peak_memory_bytes"], peak)
    assert summary["io_bytes"]["written"] >= summary["bytes"]
    again = json.loads(cli("run", "suite.yaml", "-o", "sum.h5", "--json").stdout)
    assert (again["kept"], again["computed"], again["ok"]) == (4, 0, 56)
    failed = cli("run", "failing.yaml", "-o", "fail.h5", "--json", "-q")
    summary = json.loads(failed.stdout)
    assert failed.returncode == summary["exit_status"] == 1 and summary["verdict"] == "failed"
    missing = cli("run", "suite.yaml", "--capture", "none.h5", "--json", "--summary", "none.json")
    summary = json.loads(missing.stdout)
    assert missing.returncode == summary["exit_status"] == 3 and "none.h5" in summary["error"]
    assert summary["ended_as"] == "failed" and summary["verdict"] is None


def metrics_say_what_the_summary_says():
    done = cli("run", "suite.yaml", "-o", "prom.h5", "-q", "--summary", "prom.json", "--metrics-file",
               "n.prom")
    assert done.returncode == 0, done.stderr
    summary, found = json.loads((folder / "prom.json").read_text()), metrics("n.prom")
    assert found["exit_status",] == 0
    for outcome in ("ok", "skipped", "failed"):
        assert found["cases", outcome] == summary[outcome]
    for phase, seconds in summary["phases"].items():
        assert abs(found["phase_seconds", phase] - seconds) < 1e-9
    assert found["peak_memory_bytes",] == summary["peak_memory_bytes"]
    assert found["read_bytes", "calls"] == summary["io_bytes"]["read"]
    assert found["samples", "computed"] == 4 and found["samples", "missing"] == 0
    assert (found["gates", "passed"], found["gates", "failed"]) == (1, 0)
    assert abs(found["last_success_timestamp_seconds",] - time.time()) < 60
    assert not list(folder.glob("n.prom?*"))


def the_last_success_outlives_failures():
    good = metrics("n.prom")
    os.rename(folder / "suite.yaml", folder / "away.yaml")
    assert cli("run", "suite.yaml", "--metrics-file", "n.prom").returncode == 3
    os.rename(folder / "away.yaml", folder / "suite.yaml")
    bad = metrics("n.prom")
    assert bad["exit_status",] == 3
    for name in ("last_success_timestamp_seconds", "last_finished_timestamp_seconds"):
        assert bad[name,] == good[name,]
    assert bad["last_end_timestamp_seconds",] > good["last_end_timestamp_seconds",]
    assert ("gates", "failed") not in bad
    # another suite's file: its times are not taken over
    assert cli("run", "failing.yaml", "-o", "f2.h5", "-q", "--metrics-file", "n.prom").returncode == 1
    other = metrics("n.prom")
    assert other["gates", "failed"] == 1 and other["exit_status",] == 1
    assert ("last_success_timestamp_seconds",) not in other
    assert abs(other["last_finished_timestamp_seconds",] - time.time()) < 60


def an_interrupted_run_tells_what_it_did():
    for attempt in range(20):
        process = subprocess.Popen([program, "run", "suite.yaml", "-o", "sig.h5", "-q", "--grace", "0",
                                    "--summary", "sig.json", "--metrics-file", "sig.prom"],
                                   cwd=folder, stderr=subprocess.DEVNULL)
        while not list(folder.glob("sig.h5.parts/00*.h5")) and process.poll() is None:
            time.sleep(0.002)
        process.send_signal(signal.SIGTERM)
        if process.wait() == 75:
            break
        (folder / "sig.h5").unlink()
    else:
        raise AssertionError("no signal met the run")
    summary, found = json.loads((folder / "sig.json").read_text()), metrics("sig.prom")
    assert summary["ended_as"] == "interrupted" and summary["exit_status"] == 75
    assert 0 < summary["computed"] < 4 and summary["ok"] == 14 * summary["computed"], summary
    assert found["exit_status",] == 75
    assert found["samples", "missing"] == 4 - summary["computed"]
    assert found["phase_seconds", "evaluate"] > 0
    assert cli("run", "suite.yaml", "-o", "sig.h5", "-q").returncode == 0
    journal = [json.loads(line) for line in (folder / "sig.h5.run.jsonl").read_text().splitlines()]
    assert [j["ended_as"] for j in journal] == ["interrupted", "finished"]
    assert sum(j["computed"] for j in journal) == 4 and journal[1]["kept"] == summary["computed"]
    assert all(j["peak_memory_bytes"] > 1e6 and j["phases"]["evaluate"] > 0 for j in journal)
    assert not (folder / "sig.h5.parts").exists()


def a_merge_lists_every_shard():
    for shard in ("1/2", "2/2"):
        done = cli("run", "suite.yaml", "-o", "sh.h5", "-q", "--shard", shard, "--json",
                   "--metrics-file", f"sh{shard[0]}.prom")
        assert done.returncode == 0, done.stderr
        summary = json.loads(done.stdout)
        assert summary["shard"] == int(shard[0]) and summary["parts"] == "sh.h5"
        assert summary["ok"] == 14 * summary["samples"]
        assert metrics(f"sh{shard[0]}.prom")["cases", shard, "ok"] == summary["ok"]
    done = cli("merge", "sh.h5.parts", "-o", "sh.h5", "--json", "--metrics-file", "merge.prom")
    assert done.returncode == 0, done.stderr
    summary = json.loads(done.stdout)
    assert summary["parts"] == 4 and summary["missing"] == 0 and summary["ok"] == 56
    assert metrics("merge.prom")["cases", "ok"] == 56
    journal = [json.loads(line) for line in (folder / "sh.h5.run.jsonl").read_text().splitlines()]
    assert [j["command"] for j in journal] == ["run", "run", "merge"]
    assert [j.get("shard") for j in journal] == [1, 2, None]
    done = cli("inspect", "sh.h5")
    assert b"3 processes" in done.stdout, done.stdout
    # gc takes the parts; the journal of the result stays
    assert cli("gc").returncode == 0 and not (folder / "sh.h5.parts").exists()
    assert len((folder / "sh.h5.run.jsonl").read_text().splitlines()) == 3


def what_cannot_be_written_is_said():
    done = cli("run", "suite.yaml", "-o", "sum.h5", "-q", "--metrics-file", "none/n.prom")
    assert done.returncode == 4 and b"none/n.prom" in done.stderr, done.stderr
    done = cli("run", "failing.yaml", "-o", "fail.h5", "--metrics-file", "none/n.prom")
    assert done.returncode == 1 and b"warning" in done.stderr, done.stderr
    before = (folder / "suite.yaml").read_bytes()
    done = cli("run", "suite.yaml", "-o", "sum.h5", "--summary", "suite.yaml")
    assert done.returncode == 3 and (folder / "suite.yaml").read_bytes() == before
    done = cli("run", "suite.yaml", "-o", "sum.h5", "--metrics-file", "capture.h5")
    assert done.returncode == 3 and b"HDF5" in done.stderr


tests = [f for name, f in list(globals().items())
         if callable(f) and getattr(f, "__module__", "") == "__main__"
         and name not in ("cli", "lines", "metrics")]
try:
    for test in tests:
        start = time.monotonic()
        test()
        print(f"{test.__name__} {time.monotonic() - start:.1f} s", flush=True)
finally:
    shutil.rmtree(folder, ignore_errors=True)
