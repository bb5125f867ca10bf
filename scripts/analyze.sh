#!/usr/bin/env bash
# Looks over src/ with the tools of Debian that find what tests do not.
#   scripts/analyze.sh [STEP...]     all; tidy cppcheck gcc tsan valgrind
# tidy      clang-tidy with the repository's .clang-tidy
# cppcheck  warnings, performance and portability
# gcc       gcc -fanalyzer
# tsan      ThreadSanitizer with clang, LLVM's OpenMP runtime and its archer, which tells TSan what
#           OpenMP orders: commands over two threads
# valgrind  memcheck: the same commands
# A tool that is missing is named and skipped. scripts/analysis/known.txt explains, a line each, what
# is no defect: STEP FILE CHECK REASON; anything else is a finding and exit status 1. Logs and builds:
# build/analysis. JOBS=n (2) compilers or analysers at a time.
set -euo pipefail
cd "$(dirname "$0")/.."
root=$PWD
out=$root/build/analysis
known=$root/scripts/analysis/known.txt
jobs=${JOBS:-2}
steps=("$@")
[[ ${#steps[@]} -gt 0 ]] || steps=(tidy cppcheck gcc tsan valgrind)
status=0
mkdir -p "$out"

skip() { echo "$1: skipped, $2"; }

# build FOLDER CMAKE-ARGUMENT...
build() {
    local folder=$1
    shift
    cmake -S . -B "$folder" -G Ninja -DATS_CUDA=OFF -DBUILD_TESTING=OFF "$@" >"$folder.log" 2>&1 &&
        ninja -C "$folder" -j"$jobs" attnstress >>"$folder.log" 2>&1 ||
        { tail -20 "$folder.log" >&2; exit 1; }
}

sources() { find src -name '*.c' -not -path '*/cuda/*' | sort; }

# found STEP: lines FILE:LINE...[CHECK] on stdin; those not in known.txt are printed.
found() {
    local step=$1 line file check
    sed "s#$root/##" | sort -u | while IFS= read -r line; do
        file=${line%%:*}
        check=${line##*[}
        check=${check%%]*}
        awk -v s="$step" -v f="$file" -v c="$check" \
            '$1 == s && (f ~ ("^" $2 "$")) && $3 == c { hit = 1 } END { exit !hit }' "$known" || echo "$line"
    done >"$out/$step.found"
    cat "$out/$step.found"
    if [[ -s $out/$step.found ]]; then status=1; fi
    echo "$step: $(wc -l <"$out/$step.found") findings"
}

# commands RUNNER...: the program's main commands over a small capture, each through RUNNER.
commands() {
    local place=$out/place
    rm -rf "$place" && mkdir -p "$place"
    cp examples/captures/recall-short.h5 "$place/capture.h5"
    (
        cd "$place"
        cp "$root/tests/faults/suite.yaml" suite.yaml
        "$@" synth -q -o synth.h5 --samples 2 --layers 1 --keys 96 --rope half --truth truth.json
        "$@" run suite.yaml -q -o a.h5 --threads 2
        "$@" run suite.yaml -q -o b.h5 --threads 2 --shard 1/1
        "$@" merge -q -o c.h5 b.h5.parts --threads 2
        cmp a.h5 c.h5
        "$@" verify synth.h5 --threads 2
        "$@" inspect capture.h5
        "$@" plan suite.yaml
        "$@" diagnose capture.h5 --threads 2
        "$@" explain a.h5 --case 1 --layer 0 --head 0 --capture capture.h5 --threads 2
        "$@" compare a.h5 c.h5 --threads 2
        "$@" report a.h5 -o a.html
    ) >"$out/commands.log" 2>&1
}

tidy() {
    command -v clang-tidy >/dev/null || { skip tidy "there is no clang-tidy: apt-get install clang-tidy"; return; }
    build "$out/release" -DCMAKE_BUILD_TYPE=Release
    sources | grep -v cpu_ops_amx | xargs -P"$jobs" -n4 clang-tidy -p "$out/release" --quiet >"$out/tidy.log" 2>/dev/null || true
    grep -E '^[^ ]+:[0-9]+:[0-9]+: (warning|error):.*\[[a-z]' "$out/tidy.log" | found tidy
}

cppcheck_step() {
    command -v cppcheck >/dev/null || { skip cppcheck "there is no cppcheck: apt-get install cppcheck"; return; }
    sources | cppcheck --file-list=- -j"$jobs" -Isrc --enable=warning,performance,portability --std=c11 -D_GNU_SOURCE \
        -DNAN=0.0f -DINFINITY=1.0f --suppress=missingIncludeSystem -q --template='{file}:{line}: {message} [{id}]' \
        2>"$out/cppcheck.log" >/dev/null || true
    grep -E '\]$' "$out/cppcheck.log" | found cppcheck
}

gcc_step() {
    gcc -fanalyzer -x c -c -o /dev/null - </dev/null 2>/dev/null || { skip gcc "this gcc has no -fanalyzer (10 and later have)"; return; }
    local flags
    flags=$(pkg-config --cflags hdf5 2>/dev/null || echo -I/usr/include/hdf5/serial)
    # without what needs other flags: instruction sets, the build's version
    sources | grep -vE 'cpu_ops_a|engine/version' | xargs -P"$jobs" -I{} sh -c \
        "timeout 300 gcc -fanalyzer -fopenmp -O1 -fno-strict-aliasing -D_GNU_SOURCE -Isrc $flags -c {} -o /dev/null 2>&1 || echo '{}:1: it does not end or compile [-Wanalyzer-time]'" \
        >"$out/gcc.log" || true
    grep -E '\[-Wanalyzer|\[CWE' "$out/gcc.log" | grep -E '^[^ ]+:[0-9]+' | found gcc
}

tsan() {
    local llvm
    llvm=$(dirname "$(find /usr/lib/llvm-*/lib -name libarcher.so 2>/dev/null | sort | tail -1)")
    if ! command -v clang >/dev/null || [[ ! -f $llvm/libarcher.so ]]; then
        skip tsan "it needs clang and an OpenMP runtime that TSan understands, LLVM's with archer (gcc's orders threads unseen): apt-get install clang libomp-14-dev"
        return
    fi
    build "$out/tsan" -DCMAKE_BUILD_TYPE=Debug -DCMAKE_C_COMPILER=clang -DCMAKE_C_FLAGS_DEBUG="-O1 -g" \
        -DCMAKE_C_FLAGS=-fsanitize=thread -DCMAKE_EXE_LINKER_FLAGS=-fsanitize=thread
    OMP_TOOL_LIBRARIES=$llvm/libarcher.so TSAN_OPTIONS="ignore_noninstrumented_modules=1 exitcode=66" \
        commands "$out/tsan/attnstress" || { echo "tsan: a command failed, see $out/commands.log" >&2; status=1; }
    cp "$out/commands.log" "$out/tsan.out"
    { grep -E '^SUMMARY: ThreadSanitizer' "$out/tsan.out" || true; } |
        sed -E 's/^SUMMARY: ThreadSanitizer: (.*) ([^ ]+:[0-9]+).*/\2: \1 [tsan]/' | found tsan
}

valgrind_step() {
    command -v valgrind >/dev/null || { skip valgrind "there is no valgrind: apt-get install valgrind"; return; }
    build "$out/debug" -DCMAKE_BUILD_TYPE=Debug -DCMAKE_C_FLAGS_DEBUG="-O1 -g"
    # Possibly lost: the storage of threads that still wait when the program ends.
    # a told OMP_WAIT_POLICY keeps the program from starting itself again, which valgrind cannot follow
    OMP_WAIT_POLICY=passive commands valgrind -q --error-exitcode=9 --leak-check=full \
        --show-leak-kinds=definite --errors-for-leak-kinds=definite "$out/debug/attnstress" ||
        { echo "valgrind: a command failed, see $out/valgrind.out" >&2; status=1; }
    cp "$out/commands.log" "$out/valgrind.out"
    { grep -E '^==[0-9]+== +(by|at) .*\([a-z0-9_]+\.c:[0-9]+\)' "$out/valgrind.out" || true; } |
        sed -E 's/.*\(([a-z0-9_]+\.c:[0-9]+)\).*/\1: is in an error of memcheck [memcheck]/' | found valgrind
}

for step in "${steps[@]}"; do
    case $step in
        tidy | tsan) $step ;;
        cppcheck | gcc | valgrind) "${step}_step" ;;
        *) echo "analyze: \"$step\" is no step; tidy, cppcheck, gcc, tsan and valgrind are" >&2; exit 2 ;;
    esac
done
exit $status
