"""Sums gcov's counts over a build folder.

usage: coverage.py BUILD LINES BRANCHES     the bars in per cent"""
import collections
import json
import pathlib
import subprocess
import sys

build = pathlib.Path(sys.argv[1]).resolve()
bars = float(sys.argv[2]), float(sys.argv[3])
root = pathlib.Path(__file__).resolve().parents[2]
lines = collections.defaultdict(lambda: collections.defaultdict(int))
branches = collections.defaultdict(dict)


def add(report):
    for file in report["files"]:
        path = (pathlib.Path(report["current_working_directory"]) / file["file"]).resolve()
        if not path.is_relative_to(root / "src"):
            continue
        name = str(path.relative_to(root))
        for line in file["lines"]:
            number = line["line_number"]
            lines[name][number] += line["count"]
            counts = [b["count"] for b in line["branches"]]
            before = branches[name].get(number, [])
            if len(before) == len(counts):
                counts = [a + b for a, b in zip(before, counts)]
            elif len(before) > len(counts):
                counts = before
            branches[name][number] = counts


def per_cent(part, whole):
    return 100 * part / whole if whole else 100.0


# a file that no test ran has a .gcno alone
notes = sorted(p for p in build.rglob("*.gcno") if "/src/" in str(p.relative_to(build)) or
               str(p.relative_to(build)).startswith("src/"))
for note in notes:
    done = subprocess.run(["gcov", "--json-format", "--stdout", "--branch-probabilities", str(note)],
                          capture_output=True, text=True, cwd=build)
    for text in done.stdout.splitlines():
        if text.startswith("{"):
            add(json.loads(text))

folders = collections.defaultdict(lambda: [0, 0, 0, 0])
for name in lines:
    covered = sum(c > 0 for c in lines[name].values())
    taken = [c for counts in branches[name].values() for c in counts]
    for key in (str(pathlib.Path(name).parent), "all"):
        for i, n in enumerate((covered, len(lines[name]), sum(c > 0 for c in taken), len(taken))):
            folders[key][i] += n
print(f"{'folder':<16} {'lines':>16} {'branches':>16}")
for key, (covered, count, taken, ways) in sorted(folders.items(), key=lambda f: (f[0] == "all", f[0])):
    print(f"{key:<16} {per_cent(covered, count):6.1f} % {covered:>7} of {count} "
          f"{per_cent(taken, ways):6.1f} % {taken:>7} of {ways}")

worst = []
with open(build / "uncovered.txt", "w") as out:
    for name in sorted(lines):
        source = (root / name).read_text().splitlines()
        missing = sorted(n for n, c in lines[name].items() if c == 0)
        worst.append((len(missing), len(lines[name]), name))
        for n in missing:
            out.write(f"{name}:{n}: {source[n - 1].strip() if n <= len(source) else str()}\n")
print("\nmost uncovered lines:")
for missing, count, name in sorted(worst, reverse=True)[:25]:
    print(f"{missing:5} of {count:5} {name}")
covered, count, taken, ways = folders["all"]
sys.exit(1 if per_cent(covered, count) < bars[0] or per_cent(taken, ways) < bars[1] else 0)
