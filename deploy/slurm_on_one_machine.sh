#!/usr/bin/env bash
# Runs a command under a real Slurm of this machine alone, and takes that down again.
#
#   deploy/slurm_on_one_machine.sh bash
#   deploy/slurm_on_one_machine.sh sbatch --wait --cpus-per-task=1 deploy/slurm.sh …
#
# For trying slurm.sh where there is no cluster. Two nodes, bmg1 and bmg2, of one CPU
# each; nothing is left of them afterwards, and a Slurm that already runs here is not
# touched. It needs root, and Debian's packages:
#
#   apt-get install slurm-wlm munge iproute2
set -euo pipefail

(($#)) || { echo "usage: $0 COMMAND [ARGUMENT …]" >&2; exit 2; }
((EUID == 0)) || { echo "error: Slurm changes users, which needs root" >&2; exit 2; }
for program in munged slurmctld slurmd sbatch ip; do
  command -v "$program" >/dev/null || {
    echo "error: $program is missing: apt-get install slurm-wlm munge iproute2" >&2
    exit 2
  }
done

folder=$(mktemp -d -t bmg_slurm_XXXXXX)
daemons=()
take_down() {
  squeue --noheader --format=%i | xargs --no-run-if-empty scancel || true
  # A job has half a minute (KillWait) to end before it is killed.
  for _ in {1..60}; do
    [[ -n "$(squeue --noheader)" ]] || break
    sleep 1
  done
  kill "${daemons[@]}" 2>/dev/null || true
  wait "${daemons[@]}" 2>/dev/null || true
  rm -rf "$folder"
}
trap take_down EXIT

# Ports that are free now, and outside those that slurm.sh takes for Ray.
mapfile -t ports < <(python3 -c '
import socket
sockets = [socket.socket() for _ in range(3)]
for one in sockets:
    one.bind(("127.0.0.1", 0))
print(*(one.getsockname()[1] for one in sockets), sep="\n")')
host=$(hostname -s)
memory=$(awk '/^MemTotal/ { print int($2 / 1024 / 2) }' /proc/meminfo)

dd if=/dev/urandom of="$folder/munge.key" bs=128 count=1 status=none
chmod 400 "$folder/munge.key"
# --force, since munge wants its socket in a folder that all users can reach.
munged --foreground --force --key-file="$folder/munge.key" \
  --socket="$folder/munge.socket" --pid-file="$folder/munge.pid" \
  --seed-file="$folder/munge.seed" 2>"$folder/munge.log" &
daemons+=($!)

cat >"$folder/slurm.conf" <<END
ClusterName=bmg_sweeps
SlurmctldHost=$host(127.0.0.1)
SlurmctldPort=${ports[0]}
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket=$folder/munge.socket
CredType=cred/munge
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
MpiDefault=none
ReturnToService=2
SlurmctldPidFile=$folder/slurmctld.pid
SlurmctldLogFile=$folder/slurmctld.log
SlurmdPidFile=$folder/%n.pid
SlurmdLogFile=$folder/%n.log
SlurmdSpoolDir=$folder/%n
StateSaveLocation=$folder/state
SchedulerParameters=requeue_setup_env_fail
MinJobAge=3600
NodeName=bmg1 NodeHostname=$host NodeAddr=127.0.0.1 Port=${ports[1]} CPUs=1 RealMemory=$memory
NodeName=bmg2 NodeHostname=$host NodeAddr=127.0.0.1 Port=${ports[2]} CPUs=1 RealMemory=$memory
PartitionName=all Nodes=ALL Default=YES MaxTime=INFINITE State=UP
END
mkdir "$folder/state" "$folder/bmg1" "$folder/bmg2"
export SLURM_CONF="$folder/slurm.conf"

for _ in {1..100}; do
  [[ ! -S "$folder/munge.socket" ]] || break
  sleep 0.1
done
slurmctld -D 2>>"$folder/slurmctld.log" &
daemons+=($!)
for node in bmg1 bmg2; do
  slurmd -D -N "$node" 2>>"$folder/$node.log" &
  daemons+=($!)
done
for _ in {1..60}; do
  [[ $(sinfo --noheader --states=idle --format=%D 2>/dev/null) != 2 ]] || break
  sleep 1
done
[[ $(sinfo --noheader --states=idle --format=%D) == 2 ]] || {
  echo "error: Slurm's nodes did not come up:" >&2
  cat "$folder"/*.log >&2
  exit 1
}

# Nobody knows the nodes' names; slurm.sh takes the address of a network instead.
export RAY_INTERFACE=lo
"$@"
