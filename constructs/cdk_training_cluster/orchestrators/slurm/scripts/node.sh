# shellcheck shell=bash
# What Slurm's prolog, epilog and health check look at, and how a node that fails takes itself out of its queues.
# ROOT is empty on a node; tests set it to a directory of their own.

ROOT=${ROOT:-}
# Slurm gives its scripts no search path. https://slurm.schedmd.com/prolog_epilog.html
export PATH=$ROOT/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
# A file here takes the node out: its first line is the reason. A watchdog writes it, or an operator by hand.
DRAIN_DIR=$ROOT/run/cdk-training-cluster/drain
# Longer than nvidia-smi and a busy file system take, and much shorter than Slurm waits for a prolog.
SECONDS_TO_ANSWER=30

# GPUS, NEURON_DEVICES, EFA_DEVICES, MOUNT_POINT and SLURM_BIN.
# shellcheck source=/dev/null
source "${BASH_SOURCE[0]%/*}/settings"

# Without it scontrol finds no controller, and the drain is lost: Slurm sets none for a HealthCheckProgram.
# https://docs.aws.amazon.com/pcs/latest/userguide/slurm-configuration.html
export SLURM_CONF=${SLURM_CONF:-/run/slurm/conf/slurm.conf}

# in_time COMMAND...: fails where it does not answer. KILL, since one that waits for a device ignores other signals.
in_time() {
  timeout --signal KILL "$SECONDS_TO_ANSWER" "$@" 2>/dev/null
}

# count PATTERN: how many files match.
count() {
  compgen -G "$1" | wc -l
}

# Each check prints one sentence where something is wrong, and nothing where all is well.

drain_files() {
  local file sentence
  for file in "$DRAIN_DIR"/*; do
    if [[ ! -e $file ]]; then continue; fi
    sentence=$(head -n 1 "$file")
    printf '%s' "${sentence:-${file##*/}}"
    return
  done
}

set_up() {
  local report=$ROOT/var/lib/cdk-training-cluster/bootstrap.json
  if [[ ! -f $report ]]; then return; fi
  python3 -IS -c 'import json, sys
report = json.load(open(sys.argv[1]))
if report["state"] == "failed":
    print("the set-up of the node failed at " + report["step"] + ": " + report["message"], end="")' "$report"
}

gpus() {
  local listed found
  if ((GPUS == 0)); then return; fi
  if ! listed=$(in_time nvidia-smi --list-gpus); then
    printf 'nvidia-smi failed, or did not answer in %s seconds' "$SECONDS_TO_ANSWER"
    return
  fi
  # MIG devices are indented below their GPU.
  found=$(grep -c '^GPU ' <<<"$listed" || true)
  if ((found != GPUS)); then printf 'nvidia-smi lists %s GPUs, and the instance type has %s' "$found" "$GPUS"; fi
}

neuron_devices() {
  local found
  found=$(count "$ROOT/dev/neuron[0-9]*")
  if ((found < NEURON_DEVICES)); then
    printf 'the node has %s Neuron devices, and the instance type has %s' "$found" "$NEURON_DEVICES"
  fi
}

efa_devices() {
  local found
  found=$(count "$ROOT/sys/class/infiniband/*")
  if ((found < EFA_DEVICES)); then
    printf 'the node has %s EFA devices, and its launch template asks for %s' "$found" "$EFA_DEVICES"
  fi
}

file_system() {
  local type
  if [[ -z $MOUNT_POINT ]]; then return; fi
  if ! type=$(in_time stat --file-system --format %T "$ROOT$MOUNT_POINT"); then
    printf '%s did not answer in %s seconds' "$MOUNT_POINT" "$SECONDS_TO_ANSWER"
  elif [[ $type != lustre ]]; then
    printf '%s is %s, not lustre: the file system is not mounted' "$MOUNT_POINT" "$type"
  fi
}

# drain SENTENCE: keeps the reason of a node that is drained already, which an operator may have given.
drain() {
  local shown
  shown=$(in_time "$SLURM_BIN/scontrol" --oneliner show node "$SLURMD_NODENAME")
  if [[ $shown == *+DRAIN* ]]; then return; fi
  in_time "$SLURM_BIN/scontrol" update nodename="$SLURMD_NODENAME" state=drain reason="$1"
}

# check NAME...: drains the node and fails at the first check that finds something.
check() {
  local name said
  for name in "$@"; do
    said=$("$name")
    if [[ -z $said ]]; then continue; fi
    # What Slurm shows is one line; slurmd's log has the same sentence where the controller cannot be reached.
    printf '%s\n' "$said" >&2
    drain "$(tr -cd '[:print:]' <<<"$said" | cut -c 1-500)" || echo "the node could not be drained with this reason" >&2
    return 1
  done
}
