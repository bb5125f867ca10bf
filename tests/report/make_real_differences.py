"""Writes fixtures/real_differences.h: cluster differences of two real checkpoints.

usage: attnstress run suites/nightly.yaml --capture SHORT.h5 -o a.h5     (24 documents each)
       attnstress run suites/nightly.yaml --capture LONG.h5 -o b.h5
       attnstress compare a.h5 b.h5 --json > ab.json
       python3 tests/report/make_real_differences.py ab.json > tests/report/fixtures/real_differences.h
"""
import json
import sys

comparison = json.load(open(sys.argv[1], encoding="utf-8"))
rows = [r for r in comparison["gates"] + comparison["summary"]
        if None not in r["differences"] and any(r["differences"])]
n = comparison["clusters"]
print("/* Written by make_real_differences.py from a comparison of two real checkpoints. */")
print("/* clang-format off */")
print(f"enum {{ REAL_GATES = {len(comparison['gates'])}, REAL_ROWS = {len(rows)}, "
      f"REAL_CLUSTERS = {n} }};")
print("static const char *const REAL_NAMES[] = {")
print(",\n".join(f"    {json.dumps(r['name'])}" for r in rows) + "};")
print("static const double REAL_MAX_DROP[] = {" +
      ", ".join(repr(g["max_drop"]) for g in comparison["gates"]) + "};")
print(f"static const double REAL_DIFFERENCES[{len(rows)}][{n}] = {{")
for r in rows:
    print("    {" + ",\n     ".join(", ".join(f"{d:.9g}" for d in r["differences"][i:i + 6])
                                    for i in range(0, n, 6)) + "},")
print("};")
print("/* clang-format on */")
