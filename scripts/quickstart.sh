#!/usr/bin/env bash
# From a fresh Debian 12 machine to a verdict: installs what is needed, builds the program and
# runs the quickstart suite on the bundled capture of a small model that retrieves facts.
set -euo pipefail
cd "$(dirname "$0")/.."

echo "== 1/3 packages"
scripts/setup.sh
echo "== 2/3 build (build/release)"
cmake --preset release >/dev/null
cmake --build --preset release | tail -n 1
echo "== 3/3 run suites/quickstart.yaml on examples/captures/recall-short.h5"
mkdir -p results
build/release/attnstress run suites/quickstart.yaml -o results/quickstart.h5 --force
