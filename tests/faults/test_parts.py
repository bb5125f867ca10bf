"""Truncated and altered parts, parts and results of other runs, two writers, full disks.

usage: test_parts.py PROGRAM"""
import os
import shutil
import subprocess
import sys
import time

from harness import Place

program = sys.argv[1]
place = Place(program)


def cli(*words):
    return subprocess.run([program, *words], cwd=place.folder, capture_output=True, text=True,
                          env=place.environment(), timeout=300)


def make_parts(output):
    for shard in ("1/2", "2/2"):
        done = place.run(output, "--shard", shard)
        assert done.returncode == 0, done.stderr
    parts = place.parts(output)
    assert len(parts) > 2
    return parts


def damaged_parts_are_found_and_computed_again():
    parts = make_parts("out.h5")
    raw = parts[1].read_bytes()
    for name, damaged in (
        ("truncated", raw[: len(raw) // 2]),
        ("short", raw[:10]),
        ("empty", b""),
        ("no seal", raw[:-64]),
        ("flipped seal", raw[:-20] + bytes([raw[-20] ^ 1]) + raw[-19:]),
        *((f"bit {at}", raw[:at] + bytes([raw[at] ^ 4]) + raw[at + 1:])
          for at in place.random.sample(range(len(raw) - 64), 5)),
    ):
        parts[1].write_bytes(damaged)
        done = cli("merge", "out.h5.parts", "-o", "joined.h5")
        assert done.returncode == 3 and "001.h5" in done.stderr, (name, done.stderr)
        assert not (place.folder / "joined.h5").exists()
    done = subprocess.run([program, "run", "suite.yaml", "-o", "out.h5"], cwd=place.folder,
                          capture_output=True, text=True, env=place.environment(), timeout=300)
    assert done.returncode == 0 and "computed again" in done.stderr, done.stderr
    assert "3 of 4 samples" in done.stderr or "samples are in" in done.stderr, done.stderr
    place.finish("out.h5")


def merges_whatever_the_split():
    for n in (1, 2, 3, 7):
        for i in range(1, n + 1):
            done = place.run(f"s{i}.h5", "--shard", f"{i}/{n}")
            assert done.returncode == 0, done.stderr
        folders = [f"s{i}.h5.parts" for i in range(n, 0, -1)
                   if (place.folder / f"s{i}.h5.parts").exists()]
        done = cli("merge", *folders, "-o", "joined.h5")
        assert done.returncode == 0, done.stderr
        assert (place.folder / "joined.h5").read_bytes() == place.whole, n
        done = cli("merge", *folders, *folders, "-o", "joined.h5")  # twice is once
        assert done.returncode == 0, done.stderr
        if n == 2:
            done = cli("merge", folders[0], "-o", "half.h5")
            assert done.returncode == 3 and "are missing" in done.stderr, done.stderr
            done = cli("merge", folders[0], "-o", "half.h5", "--partial")
            assert done.returncode == 2, (done.returncode, done.stderr)
            # what is partial is completed by a run
            assert place.run("half.h5").returncode == 0
            assert (place.folder / "half.h5").read_bytes() == place.whole
        for folder in folders:
            shutil.rmtree(place.folder / folder)
        (place.folder / "joined.h5").unlink()


def other_runs_are_refused():
    make_parts("out.h5")
    text = (place.folder / "suite.yaml").read_text()
    (place.folder / "suite.yaml").write_text(text.replace("tau: [1, 2]", "tau: [1, 3]"))
    done = place.run("out.h5")
    assert done.returncode == 3 and "suite_hash" in done.stderr, done.stderr
    shutil.copy(place.folder / "whole.h5", place.folder / "other.h5")
    done = place.run("other.h5")
    assert done.returncode == 3 and "--force" in done.stderr, done.stderr
    assert (place.folder / "other.h5").read_bytes() == place.whole
    assert place.run("other.h5", "--force").returncode == 0
    assert (place.folder / "other.h5").read_bytes() != place.whole
    (place.folder / "suite.yaml").write_text(text)

    capture = place.folder / "capture.h5"
    raw = capture.read_bytes()
    capture.write_bytes(raw + b"\0")  # a capture that was exchanged between two runs
    done = place.run("out.h5")
    assert done.returncode == 3 and "capture_hashes" in done.stderr, done.stderr
    capture.write_bytes(raw)
    place.finish("out.h5")

    (place.folder / "notes.h5").write_text("not a result")
    done = place.run("notes.h5", "--force")
    assert done.returncode == 4 and "no HDF5 file" in done.stderr, done.stderr
    assert (place.folder / "notes.h5").read_text() == "not a result"


def a_second_writer_is_told_who_the_first_is():
    import signal
    first = place.start("out.h5", "--grace", "60")
    lock = place.folder / "out.h5.parts" / "run.lock"
    for _ in range(3000):
        if lock.exists() or first.poll() is not None:
            break
        time.sleep(0.001)
    first.send_signal(signal.SIGSTOP)
    if first.poll() is None and lock.exists():
        for more in ((), ("--shard", "1/2")):
            done = place.run("out.h5", *more)
            assert done.returncode == 4, (done.returncode, done.stderr)
            assert f"process {first.pid} on {os.uname().nodename}" in done.stderr, done.stderr
        done = cli("gc", "--older-than", "0")
        assert "in use" in done.stdout, done.stdout
        first.kill()
        first.wait()
        assert lock.exists()  # of a dead process: taken over
    else:
        raise AssertionError("the first run ended before it could be stopped")
    place.finish("out.h5")


def locks_of_other_machines_are_believed_until_they_are_silent():
    folder = place.folder / "out.h5.parts"
    folder.mkdir()
    lock = folder / "run.lock"
    lock.write_text("attnstress lock 1\npid 1\nstarted 1\nboot b\nhost far-away\nspace s\n"
                    "job slurm 7.0\nsince 2026-01-01T00:00:00Z\npurpose runs suite x\n")
    done = place.run("out.h5")
    assert done.returncode == 4 and "far-away" in done.stderr, done.stderr
    os.environ["SLURM_JOB_ID"], os.environ["SLURM_PROCID"] = "7", "0"
    place.finish("out.h5")  # the scheduler started this job again: the older process is gone
    del os.environ["SLURM_JOB_ID"], os.environ["SLURM_PROCID"]
    folder.mkdir()
    lock.write_text("attnstress lock 1\npid 1\nstarted 1\nboot b\nhost far-away\nspace s\njob \n"
                    "since 2026-01-01T00:00:00Z\npurpose runs suite x\n")
    os.utime(lock, (time.time() - 700, time.time() - 700))
    place.finish("out.h5")


def a_full_disk_keeps_what_was_sealed():
    small = place.folder / "small"
    small.mkdir()
    mount = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1200k", "tmpfs", str(small)],
                           capture_output=True)
    if mount.returncode != 0:
        print("no tmpfs can be mounted here: the full disk is left out")
        return
    try:
        done = place.run("small/out.h5")
        assert done.returncode == 4, (done.returncode, done.stderr)
        assert "small/out.h5" in done.stderr and "are kept in" in done.stderr, done.stderr
        assert place.parts("small/out.h5") and not (small / "out.h5").exists()
        kept = len(place.parts("small/out.h5"))
        assert place.run("small/out.h5").returncode == 4
        assert len(place.parts("small/out.h5")) >= kept
        subprocess.run(["mount", "-o", "remount,size=64m", str(small)], check=True)
        done = place.run("small/out.h5")
        assert done.returncode == 0, done.stderr
        assert (small / "out.h5").read_bytes() == place.whole
        assert sorted(p.name for p in small.iterdir()) == ["out.h5", "out.h5.run.jsonl"]
        subprocess.run(["mount", "-o", "remount,ro", str(small)], check=True)
        assert place.run("small/out.h5").returncode == 0  # finished: nothing is written
        done = place.run("small/other.h5")
        assert done.returncode == 4 and "small/other.h5" in done.stderr, done.stderr
    finally:
        subprocess.run(["umount", str(small)], check=True)


def gc_takes_only_parts():
    parts = make_parts("out.h5")
    (parts[0].parent / "mine.txt").write_text("keep")
    done = cli("gc")
    assert "may be continued" in done.stdout and len(place.parts("out.h5")) == len(parts)
    done = cli("gc", "--older-than", "0", "--dry-run")
    assert "would go" in done.stdout and len(place.parts("out.h5")) == len(parts)
    done = cli("gc", "--older-than", "0")
    assert "removed" in done.stdout and not place.parts("out.h5"), done.stdout
    assert (parts[0].parent / "mine.txt").read_text() == "keep"
    shutil.rmtree(parts[0].parent)


def a_finished_run_is_quick():
    start = time.monotonic()
    done = subprocess.run([program, "run", "suite.yaml", "-o", "whole.h5"], cwd=place.folder,
                          capture_output=True, text=True, env=place.environment(), timeout=300)
    took = time.monotonic() - start
    assert done.returncode == 0 and "complete already" in done.stderr, done.stderr
    assert "gate 'some is left' passed" in done.stdout, done.stdout
    print(f"a finished run is judged again in {took:.2f} s")


tests = [f for name, f in list(globals().items())
         if callable(f) and getattr(f, "__module__", "") == "__main__"
         and name not in ("cli", "make_parts")]
try:
    for test in tests:
        test()
        print(test.__name__, flush=True)
finally:
    place.leave()
