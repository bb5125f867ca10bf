"""kill -9 and signals at random times, then the same command again: the undisturbed bytes.

usage: test_kill.py PROGRAM [KILLS]; ATS_FAULT_KILLS overrides the number."""
import os
import signal
import sys
import time

from harness import Place

program = sys.argv[1]
kills = int(os.environ.get("ATS_FAULT_KILLS") or (sys.argv[2] if len(sys.argv) > 2 else 8))
place = Place(program)


def duration():
    start = time.monotonic()
    place.finish("clock.h5")
    return time.monotonic() - start


def killed_at_random(n, length):
    """Several kills may fall on one run; what was kept only grows."""
    before, hits, kept_some = 0, 0, 0
    while hits < n:
        process = place.start("out.h5")
        time.sleep(place.random.random() * length)
        process.kill()
        process.communicate()
        dead = process.returncode == -signal.SIGKILL
        hits += dead
        parts = len(place.parts("out.h5"))
        assert place.whole_or_absent("out.h5")
        if dead and not (place.folder / "out.h5").exists():
            assert parts >= before, "a sealed part was lost"
            before = parts
            kept_some += parts > 0
        if (place.folder / "out.h5").exists() or place.random.random() < 0.4:
            place.finish("out.h5")
            before = 0
    if before or not place.whole_or_absent("out.h5"):
        place.finish("out.h5")
    return kept_some


def a_signal_seals_and_says_75(number):
    length = duration()
    for _ in range(20):
        process = place.start("sig.h5", "--grace", "0")
        time.sleep(place.random.random() * length)
        process.send_signal(number)
        words = process.communicate()[1]
        # before the run watches for signals, or after its end, they have their own meaning
        if process.returncode == 75:
            assert "interrupted" in words and not (place.folder / "sig.h5").exists()
            place.finish("sig.h5")
            return
        assert process.returncode in (0, -number), (process.returncode, words)
        place.finish("sig.h5")
    raise AssertionError("no signal met the run")


def only_what_is_missing_is_computed():
    done = place.run("part.h5", "--shard", "1/2")
    assert done.returncode == 0, done.stderr
    there = {p.name: p.stat().st_mtime_ns for p in place.parts("part.h5")}
    assert there
    done = place.run("part.h5", "--shard", "2/2")
    assert done.returncode == 0, done.stderr
    for p in place.parts("part.h5"):
        assert there.get(p.name, p.stat().st_mtime_ns) == p.stat().st_mtime_ns, "computed twice"
    place.finish("part.h5")


def a_vanished_folder_is_an_error_of_the_disk():
    import shutil
    for _ in range(20):
        process = place.start("gone.h5")
        for _ in range(500):
            if place.parts("gone.h5") or process.poll() is not None:
                break
            time.sleep(0.002)
        shutil.rmtree(place.folder / "gone.h5.parts", ignore_errors=True)
        words = process.communicate()[1]
        assert process.returncode in (0, 4), (process.returncode, words)
        assert place.whole_or_absent("gone.h5")
        place.finish("gone.h5")
        if process.returncode == 4:
            assert "gone.h5.parts" in words, words
            return
    raise AssertionError("the folder never vanished in time")


try:
    only_what_is_missing_is_computed()
    a_vanished_folder_is_an_error_of_the_disk()
    for number in (signal.SIGTERM, signal.SIGUSR1, signal.SIGINT):
        a_signal_seals_and_says_75(number)
    kept = killed_at_random(kills, duration())
    print(f"{kills} kills, {kept} of them left sealed parts; every result is the undisturbed one")
finally:
    place.leave()
