"""Fails when a file of src/ includes what its layer may not, or is too long.

usage: check_layers.py ROOT. The allowed directions are those of docs/architecture.md.
"""
import pathlib
import re
import sys

MAY_INCLUDE = {
    "base": set(),
    "h5": {"base"},
    "yaml": {"base"},
    "kernels": {"base"},
    "capture": {"base", "h5", "yaml"},
    "perturb": {"base", "yaml", "capture"},
    "metrics": {"base", "kernels"},
    "bench": {"base", "kernels", "metrics"},
    "suite": {"base", "yaml", "perturb", "metrics"},
    "report": {"base", "h5", "metrics", "kernels"},
    "engine": {"base", "h5", "capture", "perturb", "kernels", "metrics", "suite", "report"},
    "cli": {"base", "yaml", "capture", "perturb", "kernels", "metrics", "suite", "report", "engine",
            "h5", "bench"},
}
OWNERS = {"hdf5.h": {"h5"}, "hdf5_hl.h": {"h5"}, "zstd.h": {"h5"}, "yaml.h": {"yaml"}}
LONGEST_FILE, LONGEST_FUNCTION = 600, 80
INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]', re.M)


def layer_faults(path, folder, text):
    for kind, name in INCLUDE.findall(text):
        top = name.split("/")[0]
        if kind == '"' and top in MAY_INCLUDE and top != folder:
            if folder in MAY_INCLUDE and top not in MAY_INCLUDE[folder]:
                yield f"{path}: {folder}/ may not include {name}"
        if name in OWNERS and folder not in OWNERS[name]:
            yield f"{path}: only {', '.join(OWNERS[name])}/ may use {name}"


def function_faults(path, lines):
    """A function body is from a line that is only `{` to the line that is only `}`."""
    start = None
    for number, line in enumerate(lines, 1):
        if line.rstrip() == "{":
            start = number
        elif line.rstrip() == "}" and start:
            if number - start - 1 > LONGEST_FUNCTION:
                yield f"{path}:{start}: function of {number - start - 1} lines, at most {LONGEST_FUNCTION}"
            start = None


def main():
    root = pathlib.Path(sys.argv[1])
    faults = []
    files = sorted(p for top in ("src", "tests") for p in (root / top).rglob("*")
                   if p.suffix in {".c", ".h", ".py", ".cu", ".cuh"})
    for path in files:
        text = path.read_text(encoding="utf-8")
        lines = text.splitlines()
        shown = path.relative_to(root)
        if len(lines) > LONGEST_FILE:
            faults.append(f"{shown}: {len(lines)} lines, at most {LONGEST_FILE}")
        if shown.parts[0] == "src":
            faults += layer_faults(shown, shown.parts[1] if len(shown.parts) > 2 else "main", text)
            if path.suffix == ".c":
                faults += function_faults(shown, lines)
            if shown.parts[1] not in {"cli", "main.c"}:
                for word in (r"\bexit\(", r"\babort\(", r"\bprintf\(", r"\bputs\("):
                    if re.search(word, text) and str(shown) != "src/base/status.c":
                        faults.append(f"{shown}: {word[2:-2]} is not allowed below cli/")
        if re.search(r"\b(TODO|FIXME|XXX)\b|^\s*#\s*if 0", text, re.M) and path.name != "check_layers.py":
            faults.append(f"{shown}: left-over marker")
    if not files:
        faults.append(f"{root}: no source file found")
    print("\n".join(faults) or f"{len(files)} files, no fault")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
