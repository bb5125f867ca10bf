#!/usr/bin/env bash
# From a fresh Debian 12 machine to a verdict: installs what is needed, builds the program and
# runs the quickstart suite on the bundled capture of a small model that retrieves facts.
set -euo pipefail
cd "$(dirname "$0")/.."

echo "== 1/3 packages"
scripts/setup.sh
echo "== 2/3 build (build/release)"
cmake --preset release >/dev/null
cmake --build --preset release >build/release/build.log || {
    grep -A 12 -m 3 FAILED build/release/build.log || tail -n 20 build/release/build.log
    echo "quickstart: the build failed; all of it is in build/release/build.log" >&2
    exit 4
} >&2
tail -n 1 build/release/build.log
echo "== 3/3 run suites/quickstart.yaml on examples/captures/recall-short.h5"
mkdir -p results
build/release/attnstress run suites/quickstart.yaml -o results/quickstart.h5 --force
