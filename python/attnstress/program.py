"""Calls the program and turns its exit status into typed errors that carry its sentences."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from .errors import BY_STATUS, AttnstressError, EnvironmentFault, GateFailed, Inconclusive, InternalError

VARIABLE = "ATTNSTRESS_PROGRAM"


def program(on_path: bool = True) -> Path:
    """The program: $ATTNSTRESS_PROGRAM, the one inside this package, or the one on PATH."""
    named = os.environ.get(VARIABLE)
    if named:
        if not os.access(named, os.X_OK):
            raise EnvironmentFault(f"{VARIABLE} is {named}, which is no program")
        return Path(named)
    inside = Path(__file__).parent / "bin" / "attnstress"
    if os.access(inside, os.X_OK):
        return inside
    found = shutil.which("attnstress") if on_path else None  # that may be this package's own script
    if found:
        return Path(found)
    raise EnvironmentFault("there is no attnstress program: install the package with `pip install .` in "
                           f"the repository (it builds the program), or set {VARIABLE}")


def call(*arguments: str | os.PathLike[str], check: bool = True) -> subprocess.CompletedProcess[str]:
    """Runs the program. With `check`, a status other than 0 raises the error of that status."""
    command = [str(program()), *(os.fspath(a) for a in arguments)]
    try:
        done = subprocess.run(command, capture_output=True, text=True, encoding="utf-8", errors="replace")
    except OSError as fault:
        raise EnvironmentFault(f"{command[0]} cannot be run: {fault.strerror}") from fault
    if check and done.returncode != 0:
        raise error_of(done)
    return done


def error_of(done: subprocess.CompletedProcess[str]) -> AttnstressError:
    if done.returncode < 0:
        return InternalError(f"attnstress was ended by signal {-done.returncode}; {_words(done)}")
    kind = BY_STATUS.get(done.returncode, InternalError)
    return kind(_words(done))


def _words(done: subprocess.CompletedProcess[str]) -> str:
    text = (done.stderr.strip() or done.stdout.strip() or f"exit status {done.returncode}")
    return text.removeprefix("attnstress: error: ").removeprefix("error: ")


def _options(values: Mapping[str, Any]) -> list[str]:
    """capture=[a, b] -> --capture a --capture b; set={k: v} -> --set k=v; True -> the bare option."""
    result: list[str] = []
    for name, value in values.items():
        option = "--" + name.replace("_", "-")
        if value is None or value is False:
            continue
        if value is True:
            result.append(option)
        elif isinstance(value, Mapping):
            for k, v in value.items():
                result += [option, f"{k}={v if isinstance(v, str) else json.dumps(v)}"]
        elif isinstance(value, Iterable) and not isinstance(value, (str, bytes, os.PathLike)):
            for v in value:
                result += [option, os.fspath(v) if isinstance(v, os.PathLike) else str(v)]
        else:
            result += [option, os.fspath(value) if isinstance(value, os.PathLike) else str(value)]
    return result


def run(suite: str | os.PathLike[str], output: str | os.PathLike[str], *, strict: bool = True,
        **options: Any) -> Path:
    """`attnstress run SUITE -o OUTPUT`; keywords are its options: capture=[...], set={...}, threads=2.

    A failed gate raises `GateFailed` after the result was written; strict=False returns instead.
    """
    done = call("run", suite, "-o", output, *_options(options), check=False)
    if done.returncode and (strict or done.returncode not in (GateFailed.status, Inconclusive.status)):
        raise error_of(done)
    return Path(output)


def compare(base: str | os.PathLike[str], candidate: str | os.PathLike[str], *, strict: bool = False,
            **options: Any) -> dict[str, Any]:
    """`attnstress compare BASE CANDIDATE --format json` as a dictionary; `exit_status` is the exit
    status. A regression (1) or an open verdict (2) is data unless strict=True."""
    options = {"format": "json", **options}
    done = call("compare", base, candidate, *_options(options), check=False)
    open_ok = (0, GateFailed.status, Inconclusive.status)
    if done.returncode not in open_ok or (strict and done.returncode):
        raise error_of(done)
    try:
        found = json.loads(done.stdout)
    except json.JSONDecodeError as fault:
        raise InternalError(f"attnstress compare did not print JSON: {done.stdout[:200]!r}") from fault
    found = found if isinstance(found, dict) else {"rows": found}
    return {**found, "exit_status": done.returncode}


def verify(capture: str | os.PathLike[str], **options: Any) -> dict[str, Any]:
    """`attnstress verify CAPTURE --json`; raises `GateFailed` when a proof does not hold."""
    done = call("verify", capture, "--json", *_options(options))
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def plan(suite: str | os.PathLike[str], **options: Any) -> dict[str, Any]:
    """`attnstress plan SUITE --json`."""
    found: dict[str, Any] = json.loads(call("plan", suite, "--json", *_options(options)).stdout)
    return found
