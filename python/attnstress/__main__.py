"""`attnstress` on PATH and `python -m attnstress`: the program itself, in this process's place."""

from __future__ import annotations

import os
import sys

from .errors import EnvironmentFault
from .program import program


def main() -> None:
    try:
        path = program(on_path=False)
    except EnvironmentFault as fault:
        print(f"attnstress: error: {fault}", file=sys.stderr)
        sys.exit(fault.status)
    os.execv(path, [str(path), *sys.argv[1:]])


if __name__ == "__main__":
    main()
