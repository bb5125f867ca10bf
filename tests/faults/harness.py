"""A folder with a capture, a suite and the undisturbed result, and runs of the program in it."""
import os
import pathlib
import random
import shutil
import subprocess
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
CAPTURE = HERE.parent.parent / "examples" / "captures" / "recall-short.h5"


class Place:
    def __init__(self, program, fault_library=None, root=None):
        self.program, self.fault_library = program, fault_library
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="attnstress-faults-", dir=root))
        shutil.copy(CAPTURE, self.folder / "capture.h5")
        shutil.copy(HERE / "suite.yaml", self.folder / "suite.yaml")
        self.random = random.Random(20)
        done = self.run("whole.h5")
        assert done.returncode == 0, done.stderr
        self.whole = (self.folder / "whole.h5").read_bytes()

    def environment(self, fault=None, log=None):
        env = dict(os.environ, OMP_WAIT_POLICY="passive")
        options = "verify_asan_link_order=0:detect_leaks=0:allocator_may_return_null=1"
        env["ASAN_OPTIONS"] = options
        if fault or log:
            env["LD_PRELOAD"] = str(self.fault_library)
        if fault:
            env["ATS_FAULT"] = fault
        if log:
            env["ATS_FAULT_LOG"] = str(log)
        return env

    def command(self, output, *more):
        return [self.program, "run", "suite.yaml", "-q", "-o", output, "--threads", "2", *more]

    def run(self, output, *more, fault=None, log=None):
        return subprocess.run(self.command(output, *more), cwd=self.folder, capture_output=True,
                              text=True, env=self.environment(fault, log), timeout=300)

    def start(self, output, *more):
        return subprocess.Popen(self.command(output, *more), cwd=self.folder,
                                stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
                                env=self.environment())

    def parts(self, output):
        folder = self.folder / (output + ".parts")
        return sorted(folder.glob("[0-9][0-9][0-9].h5")) if folder.is_dir() else []

    def whole_or_absent(self, output):
        """A reader never meets anything but the final bytes."""
        path = self.folder / output
        return not path.exists() or path.read_bytes() == self.whole

    def finish(self, output, *more):
        """The same command once more: the undisturbed bytes, and nothing else is left."""
        done = self.run(output, *more)
        assert done.returncode == 0, (done.returncode, done.stderr)
        assert (self.folder / output).read_bytes() == self.whole, "the bytes differ"
        left = [p.name for p in self.folder.iterdir()
                if p.name.startswith(output + ".") and p.name != output + ".run.jsonl"]
        assert not left, (left, list((self.folder / left[0]).glob("*")))
        (self.folder / output).unlink()
        (self.folder / (output + ".run.jsonl")).unlink(missing_ok=True)

    def leave(self):
        shutil.rmtree(self.folder, ignore_errors=True)
