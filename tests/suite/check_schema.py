"""Every shipped suite validates against the schema, and wrong suites do not."""
import copy
import pathlib
import sys

try:
    import jsonschema
    import yaml
except ImportError as missing:
    print(f"skipped: {missing}")
    sys.exit(77)
import json

root = pathlib.Path(sys.argv[1])
schema = json.loads((root / "schema/suite.schema.json").read_text())
jsonschema.Draft7Validator.check_schema(schema)
validator = jsonschema.Draft7Validator(schema)
failures = 0


def check(name, document, valid):
    global failures
    errors = list(validator.iter_errors(document))
    if bool(errors) == valid:
        failures += 1
        print(f"{name}: should be {'valid' if valid else 'refused'}", *errors[:3], sep="\n  ")


for path in sorted((root / "suites").glob("*.yaml")):
    check(path.name, yaml.safe_load(path.read_text()), True)

good = {
    "suite": "s",
    "perturbations": [
        {"kind": "distractors", "positions": ["overlay", "shift"], "count": [1, 2],
         "source": ["donor", {"similar": {"cosine": [0.5], "norm_ratio": 1}}],
         "placement": {"depth": [0.1, 0.5]}},
    ],
    "gates": [{"name": "g", "metric": "tv", "max": 1, "where": {"count": [1, 2]}}],
}
check("good", good, True)
for name, path, value in [
    ("unknown key", ("sede",), 1),
    ("unknown parameter", ("perturbations", 0, "cuont"), 1),
    ("count 0", ("perturbations", 0, "count"), 0),
    ("text count", ("perturbations", 0, "count"), "many"),
    ("unknown kind", ("perturbations", 0, "kind"), "distractor"),
    ("cosine 2", ("perturbations", 0, "source"), {"similar": {"cosine": 2}}),
    ("unknown word", ("perturbations", 0, "source"), "donors"),
    ("no perturbations", ("perturbations",), []),
    ("boolean text", ("attention",), {"backend": False}),
    ("gate key", ("gates", 0, "mix"), 1),
]:
    bad = copy.deepcopy(good)
    at = bad
    for step in path[:-1]:
        at = at[step]
    at[path[-1]] = value
    check(name, bad, False)
sys.exit(failures > 0)
