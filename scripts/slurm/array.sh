#!/bin/bash
# One suite over the tasks of a job array: every task computes its share of the samples.
#
#   sbatch --array=0-7 scripts/slurm/array.sh suite.yaml tonight.h5
#   sbatch --dependency=afterok:JOBID --wrap 'attnstress merge tonight.h5.parts -o tonight.h5'
#
# or both at once: scripts/slurm/submit.sh 8 suite.yaml tonight.h5
#
# A minute before its time is over a task is told (USR1), seals what it has, and asks for its
# requeue; it goes on where it was. So does a task whose node fails.
#SBATCH --job-name=attnstress
#SBATCH --requeue
#SBATCH --open-mode=append
#SBATCH --signal=B:USR1@60
set -u

suite=$1
output=$2
shift 2
program=${ATTNSTRESS:-attnstress}

# The shell waits, so that the signal reaches it at once; the program gets it from here.
"$program" run "$suite" -o "$output" --shard auto --grace "${GRACE:-45}" "$@" &
child=$!
trap 'kill -USR1 "$child"' USR1
trap 'kill -TERM "$child"' TERM
wait "$child"
status=$?
while kill -0 "$child" 2>/dev/null; do # a trap ended the wait
  wait "$child"
  status=$?
done

if [ "$status" -eq 75 ]; then
  scontrol requeue "${SLURM_ARRAY_JOB_ID:-$SLURM_JOB_ID}${SLURM_ARRAY_TASK_ID:+_$SLURM_ARRAY_TASK_ID}"
fi
exit "$status"
