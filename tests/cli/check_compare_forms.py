"""The forms of `compare` read back by real parsers: JSON, CSV, JUnit XML.

usage: check_compare_forms.py PROGRAM CAPTURES. junitparser is used too where it is installed.
"""
import csv
import io
import json
import pathlib
import subprocess
import sys
import tempfile
import xml.etree.ElementTree as ElementTree

PROGRAM, CAPTURES = sys.argv[1], pathlib.Path(sys.argv[2])
SUITE = r"""
suite: "forms \"quoted\", <b>"
version: 1
seed: 7
captures: [x.h5]
select: {layers: [0, 1], probes: last}
spans: {target: gold}
perturbations:
  - {name: "-d", kind: distractors, positions: overlay, source: donor, count: [1, 4]}
  - {name: hot, kind: temperature, tau: [2, 4]}
gates:
  - {name: "a, \"b\" | c\u202e \x1b[31m & <d>", metric: log_mass_shift, span: gold, max_drop: 0.1}
  - {name: "NAME", metric: output_cosine, max_drop: 0.1, equivalence: 0.05}
  - {name: less, metric: tv, max_rise: 0.1}
""".replace("NAME", "n/" * 150)

# Elements, their attributes and children, as the schema that Jenkins publishes has them.
ATTRIBUTES = {
    "testsuites": {"name", "time", "tests", "failures", "errors", "disabled"},
    "testsuite": {"name", "tests", "failures", "errors", "skipped", "time", "timestamp", "hostname",
                  "id", "package"},
    "properties": set(),
    "property": {"name", "value"},
    "testcase": {"name", "classname", "time", "status", "assertions"},
    "failure": {"type", "message"},
}
CHILDREN = {"testsuites": ["testsuite"], "testsuite": ["properties", "testcase"],
            "properties": ["property"], "testcase": ["failure"], "property": [], "failure": []}
REQUIRED = {"testsuite": {"name"}, "testcase": {"name", "classname"}, "property": {"name", "value"}}


def run(*words):
    done = subprocess.run([PROGRAM, *map(str, words)], capture_output=True, check=False)
    return done.returncode, done.stdout.decode("utf-8"), done.stderr.decode("utf-8")


def check_element(element):
    assert set(element.attrib) <= ATTRIBUTES[element.tag], (element.tag, element.attrib)
    assert REQUIRED.get(element.tag, set()) <= set(element.attrib), element.tag
    tags = [child.tag for child in element]
    order = [CHILDREN[element.tag].index(tag) for tag in tags]
    assert order == sorted(order), tags
    for child in element:
        check_element(child)


def check_junit(path, comparison):
    root = ElementTree.parse(path).getroot()
    check_element(root)
    suite = root.find("testsuite")
    cases = suite.findall("testcase")
    failures = [c for c in cases if c.find("failure") is not None]
    for element in (root, suite):
        assert int(element.get("tests")) == len(cases)
        assert int(element.get("failures")) == len(failures)
    names = [(c.get("classname"), c.get("name")) for c in cases]
    assert len(set(names)) == len(names)
    assert len(failures) == sum(g["claim"] in ("regressed", "inconclusive")
                                for g in comparison["gates"])
    assert "\\x1B[31m" in cases[0].get("name") and "\\u{202E}" in cases[0].get("name")
    assert len(cases[1].get("name")) <= 203
    try:
        import junitparser
    except ImportError:
        return
    read = junitparser.JUnitXml.fromfile(str(path))
    assert (read.tests, read.failures) == (len(cases), len(failures))
    assert sum(1 for s in read for _ in s) == len(cases)


def check_csv(text, comparison):
    rows = list(csv.reader(io.StringIO(text, newline="")))
    assert {len(row) for row in rows} == {13}, {len(row) for row in rows}
    table = [dict(zip(rows[0], row)) for row in rows[1:]]
    gates = [r for r in table if r["kind"] == "gate"]
    assert [r["name"] for r in gates] == [g["name"] for g in comparison["gates"]]
    for row, gate in zip(gates, comparison["gates"]):
        assert abs(float(row["difference"]) - gate["difference"]) <= 1e-8 * abs(gate["difference"])
        assert row["verdict"] == gate["claim"]
    assert any(row["name"] == "'-d" for row in table)  # no formula for a spreadsheet
    cells = [r for r in table if r["kind"] == "cell"]
    assert len(cells) == len(comparison["cells"]) == 3 * 2 * 4


def main():
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        (folder / "s.yaml").write_text(SUITE, encoding="utf-8")
        paths = [folder / f"{name}.h5" for name in ("short", "long")]
        for path in paths:
            status, _, errors = run("run", folder / "s.yaml", "-q", "--capture",
                                    CAPTURES / f"recall-{path.stem}.h5", "-o", path)
            assert status == 0, errors
        junit = folder / "junit.xml"
        status, text, errors = run("compare", *paths, "--json", "--junit", junit)
        assert status == 2, (status, errors)
        comparison = json.loads(text)
        assert comparison["exit_status"] == 2 and comparison["verdict"] == "inconclusive"
        for gate in comparison["gates"]:
            d = [x for x in gate["differences"] if x is not None]
            assert gate["n"] == len(d) == comparison["clusters"] == 2
            assert abs(sum(d) / len(d) - gate["difference"]) < 1e-12
        assert [g["better"] for g in comparison["gates"]] == ["more", "more", "less"]
        check_junit(junit, comparison)
        check_csv(run("compare", *paths, "--format", "csv")[1], comparison)
        markdown = run("compare", *paths, "--format", "markdown")[1]
        table = [line for line in markdown.splitlines() if line.startswith("|")]
        assert table and all(ord(c) >= 32 for line in table for c in line)
    print("JSON, CSV and JUnit agree")


main()
