"""What the compiled GPU module must hold: no spills, the expected instructions, the architectures.

usage: check_module.py MODULE [CUOBJDUMP]. Prints, per kernel and architecture, registers, resident
blocks and counts of instructions. Needs cuobjdump and nvdisasm; exit status 77 without them.
"""
import collections
import os
import pathlib
import re
import shutil
import subprocess
import sys

ARCHITECTURES = ["sm_80", "sm_90a"]
# kernel: instructions that must occur, and that must not
EXPECTED = {
    "pass_mma": ({"HMMA.16816.F32": "tensor cores", "LDSM.16.M88.4": "ldmatrix",
                  "LDSM.16.MT88.4": "ldmatrix, transposed", "LDGSTS": "cp.async", "MUFU.EX2": "exp2"},
                 {"STL": "spills", "LDL": "spills", "ATOM": "atomics", "RED.": "atomics"}),
    "pass_wgmma": ({"HGMMA.64x64x16.F32": "warpgroup products", "LDGSTS": "cp.async", "MUFU.EX2": "exp2"},
                   {"STL": "spills", "LDL": "spills", "HMMA": "products of warps", "ATOM": "atomics"}),
    "pass_tma": ({"HGMMA.64x64x16.F32": "warpgroup products", "UTMALDG.2D": "copies of tiles by TMA",
                  "SYNCS.PHASECHK": "waits for a phase", "SYNCS.ARRIVE": "arrivals at a barrier",
                  "USETMAXREG": "registers moved to the groups", "MUFU.EX2": "exp2"},
                 {"STL": "spills", "LDL": "spills", "HMMA": "products of warps", "ATOM": "atomics",
                  "LDGSTS": "copies that pass through registers' owners"}),
    "pass_simt": ({"FFMA": "fp32 arithmetic", "MUFU.EX2": "exp2"},
                  {"HMMA": "rounded products", "ATOM": "atomics", "RED.": "atomics"}),
    "sums": ({"MUFU.EX2": "exp2"}, {"STL": "spills", "ATOM": "atomics"}),
    "norms": ({"DFMA": "double sums"}, {"STL": "spills", "ATOM": "atomics"}),
    "best_keys": ({}, {"STL": "spills", "LDL": "spills", "ATOM": "atomics", "RED.": "atomics"}),
    "count_keys": ({}, {"STL": "spills", "LDL": "spills", "ATOM": "atomics", "RED.": "atomics"}),
    "logits": ({"MUFU": "tanh"}, {"STL": "spills", "ATOM": "atomics"}),
}
COUNTED = ["HGMMA", "HMMA", "LDSM", "UTMALDG", "SYNCS", "LDGSTS", "MUFU", "FFMA", "FMUL", "FADD", "FMNMX", "SHFL", "BAR", "STG", "LDG"]


def dump(tool, *options):
    env = {**os.environ, "PATH": f"{pathlib.Path(tool).parent}:{os.environ['PATH']}"}
    run = subprocess.run([tool, *options], capture_output=True, text=True, env=env)
    if run.returncode != 0:
        raise SystemExit(f"{tool} {' '.join(options)}: {run.stderr.strip()}")
    return run.stdout


def demangled(names):
    text = subprocess.run(["c++filt"], input="\n".join(names), capture_output=True, text=True).stdout
    return dict(zip(names, text.splitlines()))


def kernels(sass):
    """(architecture, function) -> instructions in order."""
    found, arch, name = {}, None, None
    for line in sass.splitlines():
        head = re.match(r"\s*(?:arch = |\.target\s+)(sm_\w+)", line)
        function = re.match(r"\s*Function : (\S+)", line)
        code = re.match(r"\s*/\*[0-9a-f]{4,}\*/\s+(?:@!?U?P\w+\s+)?([A-Z][A-Za-z0-9_.]*)", line)
        if head:
            arch = head.group(1)
        elif function:
            name = function.group(1)
            found[arch, name] = []
        elif code and name:
            found[arch, name].append(code.group(1))
    return found


def resources(text):
    """function -> [(registers, stack bytes)], in the order of the architectures' images."""
    found = collections.defaultdict(list)
    for name, registers, stack in re.findall(r"Function (\S+):\s+REG:(\d+) STACK:(\d+)", text):
        found[name].append((int(registers), int(stack)))
    return found


def base_name(text):
    return re.sub(r"^.*ats::", "", text.split("(")[0].split("<")[0])


def faults_of(arch, text, code, use):
    if base_name(text) in ("pass_wgmma", "pass_tma") and arch != "sm_90a":
        return  # empty there, never launched
    wanted, refused = EXPECTED.get(base_name(text), ({}, {}))
    for instruction, what in wanted.items():
        if not any(i.startswith(instruction) for i in code):
            yield f"{arch} {text}: no {instruction} ({what})"
    for instruction, what in refused.items():
        if any(i.startswith(instruction) for i in code):
            yield f"{arch} {text}: {instruction} ({what})"
    if "pass_mma" in text and any(stack > 0 for _, stack in use):
        yield f"{arch} {text}: a stack frame of {use} (registers, bytes)"


def main():
    module = sys.argv[1]
    tool = (sys.argv[2] if len(sys.argv) > 2 and sys.argv[2] else None) or shutil.which("cuobjdump")
    if not tool or not (shutil.which("nvdisasm") or (pathlib.Path(tool).parent / "nvdisasm").exists()):
        print("no cuobjdump and nvdisasm: the module is not looked into")
        return 77
    found = kernels(dump(tool, "-sass", module))
    use = resources(dump(tool, "-res-usage", module))
    text = demangled(sorted({name for _, name in found}))
    faults = []
    for arch in ARCHITECTURES:
        missing = set(EXPECTED) - {base_name(text[n]) for a, n in found if a == arch}
        faults += [f"{arch}: no kernel {name}" for name in sorted(missing)]
    if "compute_90" not in dump(tool, "-lptx", module) and "sm_90.ptx" not in dump(tool, "-lptx", module):
        faults.append("no PTX for devices that are newer than the toolkit")
    print(f"{'arch':7} {'kernel':34} {'registers':10}" + "".join(f"{c:>8}" for c in COUNTED))
    for (arch, name), code in sorted(found.items(), key=lambda item: (text[item[0][1]], item[0][0])):
        faults += faults_of(arch, text[name], code, use[name])
        count = collections.Counter(next((c for c in COUNTED if i.startswith(c)), "") for i in code)
        order = [a for a, n in found if n == name].index(arch)
        registers = use[name][order][0] if order < len(use[name]) else "?"
        shown = re.sub(r"^void |ats::|\(.*$", "", text[name])
        print(f"{arch:7} {shown:34} {registers!s:10}" + "".join(f"{count[c]:>8}" for c in COUNTED))
    print("\n".join(faults))
    print(f"{len(found) - len({f.split(':')[0] for f in faults})} passed, {len(faults)} failed")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
