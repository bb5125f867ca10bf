from __future__ import annotations

import os
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="session", autouse=True)
def program() -> Path:
    """The program under test: ATTNSTRESS_PROGRAM, or what a build of this tree left."""
    named = os.environ.get("ATTNSTRESS_PROGRAM")
    path = Path(named) if named else ROOT / "build/release/attnstress"
    if not path.exists():
        pytest.exit(f"no program at {path}: build it or set ATTNSTRESS_PROGRAM", returncode=4)
    os.environ["ATTNSTRESS_PROGRAM"] = str(path)
    return path


@pytest.fixture(scope="session")
def root() -> Path:
    return ROOT
