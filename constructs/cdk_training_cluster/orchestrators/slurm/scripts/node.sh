# shellcheck shell=bash
# What Slurm's prolog, epilog and health check look at, and how a node that fails takes itself out of its queues.
# ROOT is empty on a node; tests set it to a directory of their own.

ROOT=${ROOT:-}
# Slurm gives its scripts no search path. https://slurm.schedmd.com/prolog_epilog.html
export PATH=$ROOT/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
# Longer than all that is asked takes to answer, and shorter than Slurm waits for a prolog.
SECONDS_TO_ANSWER=150

STATE_DIR=$ROOT/var/lib/cdk-training-cluster
# The reasons with which the node itself was drained, a line each. An operator's is none of them.
REASONS=$STATE_DIR/slurm-reasons
OPERATOR=$ROOT/run/cdk-training-cluster/drain/operator

# SLURM_BIN.
# shellcheck source=/dev/null
source "${BASH_SOURCE[0]%/*}/settings"

# Without it scontrol finds no controller, and the drain is lost: Slurm sets none for a HealthCheckProgram.
# https://docs.aws.amazon.com/pcs/latest/userguide/slurm-configuration.html
export SLURM_CONF=${SLURM_CONF:-/run/slurm/conf/slurm.conf}

# in_time COMMAND...: fails where it does not answer. KILL, since one that waits for a device ignores other signals.
in_time() {
  timeout --signal KILL "$SECONDS_TO_ANSWER" "$@" 2>/dev/null
}

# drain SENTENCE: keeps the reason of a node that is drained already, which an operator may have given.
drain() {
  local shown
  shown=$(in_time "$SLURM_BIN/scontrol" --oneliner show node "$SLURMD_NODENAME")
  if [[ $shown == *+DRAIN* ]]; then return; fi
  in_time "$SLURM_BIN/scontrol" update nodename="$SLURMD_NODENAME" state=drain reason="$1" || return 1
  if [[ -e $OPERATOR ]]; then return; fi
  mkdir -p "$STATE_DIR"
  printf '%s\n' "$1" >>"$REASONS"
}

# take_back: lets the node take jobs again where it drained itself, and has passed a verification since.
take_back() {
  local passed shown reason
  if [[ ! -s $REASONS || ! $STATE_DIR/verify.json -nt $REASONS ]]; then return 0; fi
  passed=$(python3 -IS -c 'import json, sys; print(json.load(open(sys.argv[1]))["passed"])' "$STATE_DIR/verify.json")
  if [[ $passed != True ]]; then return 0; fi
  shown=$(in_time "$SLURM_BIN/scontrol" --oneliner show node "$SLURMD_NODENAME")
  while read -r reason; do
    # Slurm adds who gave the reason, and when.
    if [[ $shown == *+DRAIN* && $shown == *"Reason=$reason ["* ]]; then
      in_time "$SLURM_BIN/scontrol" update nodename="$SLURMD_NODENAME" state=resume || return 1
      break
    fi
  done <"$REASONS"
  rm "$REASONS"
}

# check MOMENT: drains the node and fails where `cluster-node verify` finds something.
check() {
  local said status=0
  said=$(in_time cluster-node verify --at "$1") || status=$?
  if ((status == 0)); then return 0; fi
  if [[ -z $said ]]; then
    # What could not look has found nothing; but no job starts on a node that nothing has looked at.
    if [[ $1 != job-start ]]; then return 0; fi
    said="cluster-node verify ended with exit status $status and said nothing"
  fi
  # What Slurm shows is one line; slurmd's log has every sentence, where the controller cannot be reached too.
  printf '%s\n' "$said" >&2
  drain "$(head -n 1 <<<"$said" | tr -cd '[:print:]' | cut -c 1-500)" || echo "the node could not be drained with this reason" >&2
  return 1
}
