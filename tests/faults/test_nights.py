"""Many nights on a bad machine: every night one suite is run to its end through random faults, whole or in
shards, and its result must be the undisturbed one, byte by byte, with nothing left beside it.

usage: test_nights.py PROGRAM LIBRARY [NIGHTS]
ATS_FAULT_NIGHTS=N or ATS_FAULT_SECONDS=S (nights until then), ATS_FAULT_SEED=K (another week)."""
import collections
import errno
import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import time

from harness import Place

program, library = sys.argv[1], sys.argv[2]
nights = int(os.environ.get("ATS_FAULT_NIGHTS") or (sys.argv[3] if len(sys.argv) > 3 else 7))
seconds = float(os.environ.get("ATS_FAULT_SECONDS") or 0)
place = Place(program, library)
place.random.seed(int(os.environ.get("ATS_FAULT_SEED") or 1))
random, root = place.random, place.folder
tally = collections.Counter()
SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGUSR1)
WHERE = root / "disk"  # a small disk of its own where one can be mounted


class Suite:
    """A suite of its own seed, its undisturbed result and how long that takes."""

    def __init__(self, number):
        self.name = f"suite-{number}.yaml"
        text = (root / "suite.yaml").read_text().replace("seed: 7", f"seed: {100 + number}")
        (root / self.name).write_text(text)
        start = time.monotonic()
        done = subprocess.run(self.command(root / "still.h5"), cwd=root, capture_output=True, text=True,
                              env=place.environment(), timeout=300)
        assert done.returncode == 0, done.stderr
        self.length = time.monotonic() - start
        self.whole = (root / "still.h5").read_bytes()
        (root / "still.h5").unlink()
        (root / "still.h5.run.jsonl").unlink()

    def command(self, output, *more):
        return [program, "run", self.name, "-q", "-o", str(output), "--threads",
                str(random.choice((1, 2, 3))), "--metrics-file", str(root / "night.prom"),
                "--summary", str(root / "night.json"), *more]


def mount():
    WHERE.mkdir()
    made = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64m", "tmpfs", str(WHERE)],
                          capture_output=True)
    return made.returncode == 0


def resize(size):
    subprocess.run(["mount", "-o", f"remount,size={size}", str(WHERE)], check=True)


class Night:
    def __init__(self, suite):
        self.suite, self.out = suite, WHERE / "tonight.h5"
        self.parts = WHERE / "tonight.h5.parts"
        self.shards = random.choice((0, 0, 2, 3))

    def options(self):
        grace = ("--grace", random.choice(("0", "10")))
        if self.shards == 0:
            return grace
        return (*grace, "--shard", f"{random.randint(1, self.shards)}/{self.shards}")

    def start(self, **how):
        return subprocess.Popen(self.suite.command(self.out, *self.options()), cwd=root, text=True,
                                stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
                                env=place.environment(**how))

    def end(self, process, allowed):
        words = process.communicate(timeout=300)[1]
        assert process.returncode in allowed, (process.returncode, allowed, words)
        if process.returncode == 4:
            assert "tonight.h5" in words or "night." in words, words
        tally[f"status {process.returncode}"] += 1
        self.look()

    def look(self):
        """What a reader may meet at any time."""
        assert not self.out.exists() or self.out.read_bytes() == self.suite.whole, "bytes differ"
        for name, read in (("night.json", json.loads), ("night.prom", str.splitlines)):
            if (root / name).exists():
                assert read((root / name).read_text()), name

    # faults ---------------------------------------------------------------------------------------

    def killed(self):
        process = self.start()
        time.sleep(random.random() * 1.1 * self.suite.length)
        process.kill()
        self.end(process, (0, -9))

    def signalled(self):
        number = random.choice(SIGNALS)
        process = self.start()
        time.sleep(random.random() * 1.1 * self.suite.length)
        process.send_signal(number)
        # before the program watches for signals they have their own meaning
        self.end(process, (0, 75, -number))

    def disk_full(self):
        if not mounted:
            return self.call_fails()
        used = sum(p.stat().st_blocks * 512 for p in WHERE.rglob("*") if p.is_file())
        resize(used + 4096 * random.randint(1, 400))
        self.end(self.start(), (0, 4))
        resize("64m")

    def call_fails(self):
        kind, most = random.choice((("write", 3000), ("fsync", 12), ("rename", 7), ("open", 25),
                                    ("mkdir", 1), ("unlink", 6)))
        what = random.choice((errno.ENOSPC, errno.EIO, errno.EDQUOT, errno.EROFS, "KILL"))
        at = f"{random.randint(1, most)}{random.choice(('', '+'))}"
        self.end(self.start(fault=f"{kind}:{at}:{what}"), (0, 4, -9))

    def part_damaged(self):
        parts = list(self.parts.glob("[0-9]*.h5")) if self.parts.exists() else []
        if not parts:
            return
        part = random.choice(parts)
        raw = bytearray(part.read_bytes())
        way = random.choice(("flip", "cut", "empty", "zeros"))
        at = random.randrange(len(raw)) if raw else 0
        if way == "flip" and raw:
            raw[at] ^= 1 << random.randrange(8)
        elif way == "cut":
            raw = raw[:at]
        elif way == "empty":
            raw = bytearray()
        else:  # a page that a crash of the machine left unwritten
            raw[at:at + 4096] = bytes(len(raw[at:at + 4096]))
        part.write_bytes(raw)
        tally["part " + way] += 1

    def two_writers(self):
        first, second = self.start(), self.start()
        if random.random() < 0.5:
            time.sleep(random.random() * self.suite.length)
            first.send_signal(random.choice((signal.SIGKILL, signal.SIGTERM)))
        for process in (second, first):
            self.end(process, (0, 4, 75, -9, -15))

    def clock_jumps(self):
        """Locks, parts and temporary files of another year."""
        if not self.parts.exists():
            return
        for path in self.parts.iterdir():
            then = time.time() + random.choice((-1, 1)) * random.uniform(3600, 3e7)
            os.utime(path, (then, then))

    def litter(self):
        """A lock that says nothing, and a part that never was."""
        self.parts.mkdir(exist_ok=True)
        if not any(self.parts.glob("*.lock")):
            (self.parts / "run.lock").write_bytes(random.choice((b"", b"\0" * 40, b"attnstress lock")))
            os.utime(self.parts / "run.lock", (0, 0))
        (self.parts / "002.h5.tmp").write_bytes(random.randbytes(100))

    def parts_cleared(self):
        done = subprocess.run([program, "gc", str(WHERE), "--older-than",
                               random.choice(("0", "14"))], capture_output=True, text=True,
                              env=place.environment(), timeout=60)
        assert done.returncode == 0, done.stderr

    # the end --------------------------------------------------------------------------------------

    def command(self, *words):
        done = subprocess.run(words, cwd=root, capture_output=True, text=True,
                              env=place.environment(), timeout=300)
        assert done.returncode == 0, (words, done.returncode, done.stderr)

    def finish(self):
        if self.shards > 0 and not self.out.exists():
            for i in range(self.shards):
                self.command(*self.suite.command(self.out, "--shard", f"{i + 1}/{self.shards}"))
            self.command(program, "merge", str(self.parts), "-o", str(self.out), "-q")
            self.command(program, "gc", str(WHERE))
        else:
            self.command(*self.suite.command(self.out))
        assert self.out.read_bytes() == self.suite.whole, "the bytes differ"
        left = sorted(p.name for p in WHERE.iterdir())
        assert set(left) <= {"tonight.h5", "tonight.h5.run.jsonl"}, (left, list(WHERE.rglob("*")))
        assert json.loads((root / "night.json").read_text())["exit_status"] == 0
        for path in WHERE.iterdir():
            path.unlink()


FAULTS = (Night.killed, Night.killed, Night.signalled, Night.signalled, Night.disk_full, Night.disk_full,
          Night.call_fails, Night.call_fails, Night.part_damaged, Night.part_damaged,
          Night.part_damaged, Night.two_writers, Night.clock_jumps, Night.litter,
          Night.parts_cleared)

mounted = mount()
start = time.monotonic()
done = 0
try:
    suites = [Suite(k) for k in range(1 if nights <= 3 and not seconds else 3)]
    while done < nights if not seconds else time.monotonic() - start < seconds:
        night, story = Night(random.choice(suites)), []
        try:
            for _ in range(random.randint(2, 7)):
                fault = random.choice(FAULTS)
                story.append(fault.__name__)
                tally[fault.__name__] += 1
                fault(night)
            night.finish()
        except BaseException:
            print(f"night {done}, {night.shards} shards, {night.suite.name}: {story}", flush=True)
            raise
        done += 1
    print(f"{done} nights in {time.monotonic() - start:.0f} s, "
          f"{'a disk of its own' if mounted else 'no tmpfs could be mounted'}; every result is the "
          f"undisturbed one; {dict(sorted(tally.items()))}")
finally:
    if mounted:
        subprocess.run(["umount", str(WHERE)], check=False)
    place.leave()
