#!/bin/bash
# Submits an array over a suite and the job that joins its parts and judges the gates.
#
# usage: scripts/slurm/submit.sh TASKS SUITE OUT.h5 [OPTIONS OF RUN...]
set -eu

if [ $# -lt 3 ]; then
  sed -n '2,4s/^# \{0,1\}//p' "$0" >&2
  exit 3
fi
tasks=$1
suite=$2
output=$3
shift 3
here=$(cd "$(dirname "$0")" && pwd)
program=${ATTNSTRESS:-attnstress}

array=$(sbatch --parsable --array="0-$((tasks - 1))" "$here/array.sh" "$suite" "$output" "$@")
merge=$(sbatch --parsable --job-name=attnstress-merge --dependency="afterok:${array%%;*}" \
  --kill-on-invalid-dep=yes --wrap "'$program' merge '$output.parts' -o '$output'")
echo "array ${array%%;*}, merge ${merge%%;*}"
