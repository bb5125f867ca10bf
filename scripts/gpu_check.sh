#!/usr/bin/env bash
# Everything that a GPU machine can say about the kernels, in under ten minutes: build, conformance of
# both backends against the reference, compute-sanitizer where it is installed, benchmark. Needs the
# CUDA toolkit, CMake and a C and C++ compiler, nothing else. The last lines are one table, which also
# goes to bench/results/. Fails when no device ran or anything else failed.
set -uo pipefail
cd "$(dirname "$0")/.." || exit 5
build=${GPU_CHECK_BUILD:-build/gpu-check}
results=${GPU_CHECK_RESULTS:-bench/results}
log=$build/logs
failed=0
rows=()

note() { # name, verdict, seconds, words
    rows+=("| $1 | $2 | $3 s | $4 |")
    echo "== $1: $2 ($3 s) $4"
    [[ $2 == passed || $2 == skipped ]] || failed=1
}

# name, limit in seconds, command...: its output goes to a log of that name
step() {
    local name=$1 limit=$2 start=$SECONDS rc verdict=passed words
    shift 2
    timeout "$limit" "$@" >"$log/$name.log" 2>&1
    rc=$?
    words=$(grep -E 'passed, [0-9]+ failed|ERROR SUMMARY|RACECHECK SUMMARY' "$log/$name.log" | tail -n 1)
    if [[ $rc -eq 124 ]]; then
        verdict="timed out"
    elif [[ $rc -eq 77 ]]; then
        verdict=skipped
        words=$(head -n 1 "$log/$name.log")
    elif [[ $rc -ne 0 ]]; then
        verdict="failed ($rc)"
        tail -n 15 "$log/$name.log"
    fi
    note "$name" "$verdict" $((SECONDS - start)) "${words//|/ }"
    return $rc
}

# shellcheck disable=SC2329 # called by name
compile() {
    cmake -S . -B "$build" -DCMAKE_BUILD_TYPE=Release -DATS_KERNELS_ONLY=ON -DATS_CUDA=ON &&
        cmake --build "$build" -j "$(nproc)"
}
export -f compile
export build

mkdir -p "$log" "$results"
step build 150 bash -c compile || exit 1
if ! "$build/gpu_bench" --probe >"$log/probe.log" 2>&1; then
    cat "$log/probe.log" >&2
    echo "gpu_check: no device ran; nothing is shown" >&2
    exit 4
fi
step conformance.cuda 60 "$build/test_conformance" cuda
step conformance.cublas 60 "$build/test_conformance" cublas
step kernels 20 "$build/test_device" cuda kernels
# A device of capability 9.0 chooses by itself; here every kernel that it could choose has its turn.
rungs=()
if grep -q 'sm_90' "$log/probe.log"; then rungs=(mma wgmma tma); fi
for rung in "${rungs[@]}"; do
    export ATTNSTRESS_CUDA_RUNG=$rung
    step "warpgroups.$rung" 15 "$build/test_device" cuda warpgroups
    step "bench.$rung" 25 "$build/gpu_bench" --kernels
    unset ATTNSTRESS_CUDA_RUNG
done
if sanitizer=$(command -v compute-sanitizer || ls /usr/local/cuda/bin/compute-sanitizer 2>/dev/null); then
    for tool in memcheck racecheck synccheck; do
        step "$tool" 30 "$sanitizer" --tool "$tool" --error-exitcode 9 "$build/test_device" cuda short
    done
else
    note compute-sanitizer skipped 0 "not installed"
fi
step bench 80 "$build/gpu_bench"

table=$results/gpu-$(date -u +%Y%m%dT%H%M%SZ).md
{
    echo "# GPU check"
    echo
    grep '^device:' "$log/bench.log" || cat "$log/probe.log"
    echo "commit: $(git rev-parse --short=12 HEAD 2>/dev/null || echo unknown)"
    echo
    echo "| step | verdict | time | words |"
    echo "|---|---|---|---|"
    printf '%s\n' "${rows[@]}"
    echo
    grep '^|' "$log/bench.log"
    for rung in "${rungs[@]}"; do
        printf '\nATTNSTRESS_CUDA_RUNG=%s:\n\n' "$rung"
        grep '^|' "$log/bench.$rung.log"
    done
} | tee "$table"
echo "written to $table"
exit $failed
