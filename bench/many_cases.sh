#!/usr/bin/env bash
# Peak memory of `run` at 1,000, 5,000 and 10,000 cases over more and more samples, and the processor
# seconds of the same command on the finished result.
#   bench/many_cases.sh [PROGRAM]     build/release/attnstress
# Exit status 1: a further case takes over 4 KiB (2.5 KB measured, where 64 cases are a further sample;
# 1.4 KB where they are variants of the same samples), or a finished run takes over a second of
# processor time.
set -euo pipefail
program=$(realpath "${1:-build/release/attnstress}")
place=$(mktemp -d)
trap 'rm -rf "$place"' EXIT
cd "$place"
doses=$(seq -s, 1.05 0.05 4.2 | tr -d '\n') # 64
least=0 most=0 status=0
printf '%8s %8s %10s %10s %12s\n' cases samples 'peak KiB' 'run s' 'finished s'
for samples in 16 79 157; do
    "$program" synth -q -o capture.h5 --samples $samples --layers 1 --keys 128 --probes 4 >/dev/null
    cat >suite.yaml <<END
suite: many
version: 1
seed: 1
captures: [capture.h5]
spans: {target: gold}
perturbations:
  - {name: hot, kind: temperature, tau: [$doses]}
END
    rm -f out.h5*
    /usr/bin/time -f '%M %e' -o first "$program" run suite.yaml -q -o out.h5 --threads 2
    /usr/bin/time -f '%U' -o again "$program" run suite.yaml -q -o out.h5 --threads 2
    read -r peak seconds <first
    read -r finished <again
    printf '%8d %8d %10d %10s %12s\n' $((samples * 64)) $samples "$peak" "$seconds" "$finished"
    [[ $least -gt 0 ]] || least=$peak
    most=$peak
    awk -v s="$finished" 'BEGIN { exit s >= 1 }' || status=1
done
echo "$(((most - least) * 1024 / (64 * (157 - 16)))) bytes for each further case"
[[ $((most - least)) -le $((4 * 64 * (157 - 16))) ]] || status=1
exit $status
