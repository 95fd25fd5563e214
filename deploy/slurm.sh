#!/usr/bin/env bash
# Launches sweeps on a Slurm cluster, over as many nodes and jobs as they need.
#
#   sbatch deploy/slurm.sh figure_2 --scale paper --storage /shared/runs
#
# Submit it from the checkout, which, like the storage, all nodes must see. What
# follows the script's name goes to `python -m bmg_sweeps launch`, or to `rerun` if that
# is the first word; what precedes it, to Slurm:
# `sbatch --nodes=8 --gpus-per-node=4 deploy/slurm.sh … --gpus 0.25`.
#
# Five minutes before the time limit Slurm sends SIGTERM; the launch then has its points
# commit, and the job queues again, until nothing is missing. `scancel` ends it for good.
#
#SBATCH --job-name=bmg_sweeps
#SBATCH --output=bmg_sweeps-%j.log
#SBATCH --open-mode=append
#SBATCH --nodes=2
#SBATCH --ntasks-per-node=1
#SBATCH --cpus-per-task=8
#SBATCH --time=08:00:00
#SBATCH --signal=B:TERM@300
#SBATCH --requeue
set -uo pipefail

# Waits for a command, hands SIGTERM on to it, and returns its own status.
child='' signals=0
trap 'signals=$((signals + 1)); [[ -z "$child" ]] || kill -TERM "$child"' TERM
attend() {
  local before=$signals status
  ((before == 0)) || return 143
  "$@" &
  child=$!
  ((signals == before)) || kill -TERM "$child"
  while before=$signals; wait "$child"; status=$?; ((signals > before)); do :; done
  child=''
  return "$status"
}

cd "${SLURM_SUBMIT_DIR:?is set by sbatch}" || exit 2
# In which `make .venv/installed` was run; RAY_INTERFACE names a network, such as ib0.
PATH="$PWD/.venv/bin:$PATH"

mapfile -t hosts < <(scontrol show hostnames "$SLURM_JOB_NODELIST")
if [[ -n "${RAY_INTERFACE:-}" ]]; then
  ip=$(ip -4 -o address show dev "$RAY_INTERFACE" | awk '{ sub("/.*", "", $4); print $4; exit }')
else
  ip=$(getent ahostsv4 "${hosts[0]}" | awk '{ print $1; exit }')
fi
[[ -n "$ip" ]] || { echo "error: ${hosts[0]} has no IPv4 address" >&2; exit 2; }
# Jobs may share a node. Outside of the ports that systems give out by themselves.
address="$ip:$((20000 + SLURM_JOB_ID % 10000))"

# Ray listens on all interfaces, and who may speak to it may run programs as this user.
# srun hands the environment on, which only this user and root can read.
export RAY_AUTH_MODE=token RAY_USAGE_STATS_ENABLED=0
RAY_AUTH_TOKEN=$(python -c 'import secrets; print(secrets.token_hex(32))') || exit 2
export RAY_AUTH_TOKEN

# What a node runs: Ray in the foreground, its files where only this user sees them. A
# socket's name may have 107 bytes, which a long TMPDIR would use up.
# shellcheck disable=SC2016
on_node='
folder=$(env -u TMPDIR mktemp -d --tmpdir bmg_XXXXXX) || exit
trap "rm -rf $folder" EXIT
trap "" USR1 # srun sends it to Ray as well, which would die of it.
ray start "$@" --block --temp-dir="$folder/ray" --num-cpus="$CPUS" \
  --min-worker-port=0 --max-worker-port=0 --object-store-memory=200000000 &
ray=$!
trap "kill -TERM $ray" TERM USR1
wait $ray && exit
# A node that trains is drained for half a minute, after which a canceled job is killed.
(sleep 10; kill -KILL $ray) >/dev/null 2>&1 &
wait $ray'
export CPUS="${SLURM_CPUS_PER_TASK:-1}"
export SRUN_CPUS_PER_TASK="$CPUS" # Which srun no longer takes from sbatch.

# shellcheck disable=SC2016
await_nodes='
import sys, time
import ray

address, expected = sys.argv[1], int(sys.argv[2])
deadline = time.monotonic() + 240
while True:
    try:
        if not ray.is_initialized():
            ray.init(address=address, log_to_driver=False, logging_level="ERROR")
        if sum(node["Alive"] for node in ray.nodes()) >= expected:
            break
    except (ConnectionError, RuntimeError) as error:
        print("waiting:", error, file=sys.stderr)
    if time.monotonic() > deadline:
        sys.exit(f"error: fewer than {expected} nodes have joined {address}")
    time.sleep(1)'

steps=()
launch() {
  local others=$((${#hosts[@]} - 1))
  srun --nodes=1 --ntasks=1 --nodelist="${hosts[0]}" bash -c "$on_node" ray --head \
    --node-ip-address="$ip" --port="${address##*:}" --include-dashboard=false &
  steps+=($!)
  attend python -c "$await_nodes" "$address" 1 || return
  if ((others)); then
    srun --nodes="$others" --ntasks="$others" --exclude="${hosts[0]}" \
      bash -c "$on_node" ray --address="$address" &
    steps+=($!)
    attend python -c "$await_nodes" "$address" "${#hosts[@]}" || return
  fi
  local command=launch
  [[ "${1:-}" != rerun ]] || { command=rerun; shift; }
  attend python -m bmg_sweeps "$command" "$@" --address "$address"
}

launch "$@"
status=$?
# srun hands this on. Asked to end itself, it kills what it runs, whose files then stay.
kill -USR1 "${steps[@]}" 2>/dev/null
for _ in {1..30}; do
  kill -0 "${steps[@]}" 2>/dev/null || break
  sleep 1
done
kill -TERM "${steps[@]}" 2>/dev/null
wait

# A job that is being canceled has also been sent SIGTERM, and is no longer "running".
job=$(scontrol --oneliner show job "$SLURM_JOB_ID")
if ((signals && status)) && [[ "$job" == *JobState=RUNNING* ]]; then
  echo "not done: queued again"
  # Where requeuing is not allowed, a new job is, which asks for the same.
  options=(--nodes="${#hosts[@]}" --cpus-per-task="$CPUS")
  [[ ! "$job" =~ TimeLimit=([^ ]+) ]] || options+=(--time="${BASH_REMATCH[1]}")
  [[ -z "${SLURM_GPUS_PER_NODE:-}" ]] || options+=(--gpus-per-node="$SLURM_GPUS_PER_NODE")
  [[ -z "${SLURM_JOB_PARTITION:-}" ]] || options+=(--partition="$SLURM_JOB_PARTITION")
  [[ -z "${SLURM_JOB_ACCOUNT:-}" ]] || options+=(--account="$SLURM_JOB_ACCOUNT")
  scontrol requeue "$SLURM_JOB_ID" \
    || sbatch "${options[@]}" "$PWD/deploy/slurm.sh" "$@"
fi
exit "$status"
