#!/usr/bin/env bash
# Installs what the tests need, builds the `dev` preset (sanitizers, warnings are errors) and runs
# everything through ctest. Arguments go to ctest: scripts/test.sh -L quick
set -euo pipefail
cd "$(dirname "$0")/.."

echo "== 1/3 packages"
scripts/setup.sh --tests
echo "== 2/3 build (build/dev)"
cmake --preset dev >/dev/null
cmake --build --preset dev | tail -n 1
echo "== 3/3 tests"
ctest --preset dev -j "$(nproc)" "$@"
