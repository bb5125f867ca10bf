"""The layer check must see a planted fault: a check that cannot fail is none."""
import pathlib
import subprocess
import sys
import tempfile

CHECK = pathlib.Path(__file__).with_name("check_layers.py")
FAULTS = {
    "src/base/a.c": ('#include "capture/capture.h"\n', "may not include"),
    "src/kernels/b.c": ('#include "perturb/family.h"\n', "may not include"),
    "src/metrics/c.c": ("#include <hdf5.h>\n", "may use hdf5.h"),
    "src/engine/d.c": ("int x;\n" * 601, "601 lines"),
    "src/suite/e.c": ("void f(void)\n{\n" + "    g();\n" * 81 + "}\n", "function of 81 lines"),
    "src/yaml/f.c": ("void f(void) { exit(1); }\n", "not allowed below cli"),
}

for name, (text, expected) in FAULTS.items():
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder, name)
        path.parent.mkdir(parents=True)
        path.write_text(text)
        run = subprocess.run([sys.executable, CHECK, folder], capture_output=True, text=True)
        assert run.returncode == 1 and expected in run.stdout, (name, run.stdout)
print(f"{len(FAULTS)} planted faults found")
