#!/usr/bin/env bash
# Line and branch coverage of src/ by the tests: the `coverage` preset, ctest, gcov.
#   scripts/coverage.sh [CTEST-ARGUMENT...]      such as -L quick; ATS_COVERAGE_SKIP_TESTS=1 counts
#                                                what build/coverage has already run
# Prints both per folder, the files with most uncovered lines, and writes every uncovered line to
# build/coverage/uncovered.txt. Exit status 1 below 90 % of the lines or 80 % of the branches. What
# runs on a GPU (src/kernels/cuda, compiled by nvcc) is not counted: the emulation tests run it, but
# through another compiler without gcov.
set -euo pipefail
cd "$(dirname "$0")/.."
if [[ -z ${ATS_COVERAGE_SKIP_TESTS:-} ]]; then
    cmake --preset coverage -DATS_CUDA=OFF >/dev/null
    cmake --build build/coverage
    find build/coverage -name '*.gcda' -delete
    ctest --test-dir build/coverage -E 'emulation|cuda' --output-on-failure "$@" ||
        echo "coverage: some tests failed; what they ran counts all the same" >&2
fi
exec python3 scripts/analysis/coverage.py build/coverage 90 80
