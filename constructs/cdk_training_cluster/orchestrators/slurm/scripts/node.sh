# shellcheck shell=bash
# What Slurm's prolog, epilog and health check look at, and how a node that fails takes itself out of its queues.
# ROOT is empty on a node; tests set it to a directory of their own.

ROOT=${ROOT:-}
# Slurm gives its scripts no search path. https://slurm.schedmd.com/prolog_epilog.html
export PATH=$ROOT/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
# Longer than all that is asked takes to answer.
SECONDS_TO_ANSWER=150
# Slurm ends a health check after a minute.
SECONDS_OF_HEALTH_CHECK=40
SECONDS_TO_CLEAN=60
SECONDS_TO_FIND=10
# A node that fails now and again is not given job after job.
MINUTES_TO_RECOVER=5

STATE_DIR=$ROOT/var/lib/cdk-training-cluster
# The reasons with which the node itself was drained, a line each. An operator's is none of them.
REASONS=$STATE_DIR/slurm-reasons
RUN_DIR=$ROOT/run/cdk-training-cluster
OPERATOR=$RUN_DIR/drain/operator
# Slurm's own reasons for a drain of which nobody resumes a sound node, and the part of a job that each belongs to.
# Prolog error: Slurm hears no good end of a prolog, as where slurmd is restarted just then: on AWS PCS that happens
# seconds after a node's first start. https://slurm.schedmd.com/prolog_epilog.html
# https://github.com/awslabs/awsome-distributed-ai/blob/main/architectures/aws-pcs/docs/OPERATIONS.md
# Kill task failed: a process of a job does not end, as one that waits for a file system.
# https://slurm.schedmd.com/slurm.conf.html#OPT_UnkillableStepTimeout
KILL_FAILED='Kill task failed'
declare -A SLURM_REASONS=(['Prolog error']="Slurm's prolog" [$KILL_FAILED]="the end of a job")
# Slurm 26.05 adds the job to a reason, and every version adds who gave it and when.
OF_JOB='( \(JobId=[0-9]+ StepId=[A-Za-z0-9.+]+\))? \['
# When Slurm was last asked for the node's reason, and a line for each such drain since the boot. After the last that is
# taken back the cause is another one.
ASKED=$RUN_DIR/slurm-asked SLURM_DRAINS=$RUN_DIR/slurm-drains
DRAINS_TAKEN_BACK=2
# Exists when an operator was told of the processes that keep the node drained.
TOLD=$RUN_DIR/slurm-told
# A folder for each user, with a file for each of the user's jobs here; a reboot ends them all.
JOBS=$RUN_DIR/slurm-jobs
# From here on user ids are those of people: the files of services stay.
FIRST_USER=1000

# SLURM_BIN.
# shellcheck source=/dev/null
source "${BASH_SOURCE[0]%/*}/settings"

# Without it scontrol finds no controller, and the drain is lost: Slurm sets none for a HealthCheckProgram.
# https://docs.aws.amazon.com/pcs/latest/userguide/slurm-configuration.html
export SLURM_CONF=${SLURM_CONF:-/run/slurm/conf/slurm.conf}

# in_time SECONDS COMMAND...: fails where it does not answer. KILL: one that waits for a device ignores other signals.
in_time() {
  timeout --signal KILL "$@" 2>/dev/null
}

# slurm ARGUMENTS...
slurm() {
  in_time 30 "$SLURM_BIN/scontrol" "$@"
}

# drain SENTENCE: keeps the reason of a node that is drained already, which an operator may have given.
drain() {
  local shown
  shown=$(slurm --oneliner show node "$SLURMD_NODENAME")
  if [[ $shown == *+DRAIN* ]]; then return; fi
  slurm update nodename="$SLURMD_NODENAME" state=drain reason="$1" || return 1
  if [[ -e $OPERATOR ]]; then return; fi
  mkdir -p "$STATE_DIR"
  printf '%s\n' "$1" >>"$REASONS"
}

# has_passed: whether the node passed its verification of this boot, where it is verified at all.
has_passed() {
  python3 -IS - "$STATE_DIR/verify.json" "$ROOT/proc/sys/kernel/random/boot_id" <<'PYTHON'
import json, pathlib, sys

result, boot = map(pathlib.Path, sys.argv[1:])
known = json.loads(result.read_text()) if result.exists() else None
sys.exit(known is not None and not (known["passed"] and known["boot_id"] == boot.read_text().strip()))
PYTHON
}

# tell REPORT STEP MESSAGE: tells an operator through one of the reports of the node's set-up.
tell() {
  # shellcheck source=/dev/null
  (source "$ROOT/opt/cdk-training-cluster/scripts/lib.sh" && "$@") >&2
}

# take_over: makes a drain for one of Slurm's reasons one of the node's own, which `take_back` looks at. The controller is
# not asked by every node each minute.
take_over() {
  local shown reason times
  if [[ -s $REASONS || -n $(find "$ASKED" -mmin "-$MINUTES_TO_RECOVER" 2>/dev/null) ]]; then return 0; fi
  mkdir -p "$RUN_DIR"
  touch "$ASKED"
  shown=$(slurm --oneliner show node "$SLURMD_NODENAME") || return 0
  if [[ ! $shown =~ \+DRAIN.*\ Reason=([A-Za-z\ ]+)$OF_JOB ]]; then return 0; fi
  reason=${BASH_REMATCH[1]}
  if [[ -z ${SLURM_REASONS[$reason]:-} ]]; then return 0; fi
  touch "$SLURM_DRAINS"
  times=$(grep -cF "'$reason'" "$SLURM_DRAINS") || true
  if ((times > DRAINS_TAKEN_BACK)); then return 0; fi
  echo "Slurm drained the node for '$reason'" | tee -a "$SLURM_DRAINS" >&2
  if ((times < DRAINS_TAKEN_BACK)); then
    printf '%s\n' "$reason${BASH_REMATCH[2]}" >>"$REASONS"
    return 0
  fi
  # As a step of the set-up that failed: counted, and seen by the checks before a job, so that nothing resumes the node.
  tell report_failure "${SLURM_REASONS[$reason]}" \
    "Slurm drained the node $((times + 1)) times for '$reason': see slurmd's log"
}

# find_processes ARGUMENTS...: prints what pgrep finds, and a line where it does not answer.
find_processes() {
  in_time "$SECONDS_TO_FIND" pgrep --list-name "$@" || (($? == 1)) || echo "pgrep $* does not answer"
}

# processes_of_jobs: prints the steps of Slurm on the node, and the processes of each user with a job here since the boot.
processes_of_jobs() {
  local lock user
  find_processes --full '^slurmstepd: \['
  for lock in "$JOBS"/*.lock; do
    user=$(basename "$lock" .lock)
    if [[ $user != '*' ]] && ((user >= FIRST_USER)); then find_processes --uid "$user"; fi
  done
}

# wait_for_processes SHOWN: fails while processes of jobs keep the node from a recovery, and tells an operator once.
wait_for_processes() {
  local left
  if [[ ! $1 =~ Reason=$KILL_FAILED$OF_JOB ]]; then return 0; fi
  left=$(processes_of_jobs | tr '\n' ' ' | tr -cd '[:print:]' | cut -c 1-300)
  if [[ -z $left ]]; then return 0; fi
  # In other states jobs run here, and the processes may be theirs.
  if [[ $1 =~ State=[^\ ]*(IDLE|DOWN|COMPLETING) && ! -e $TOLD ]]; then
    tell report_trouble "${SLURM_REASONS[$KILL_FAILED]}" \
      "Slurm drained the node for '$KILL_FAILED', and processes are left: $left"
    touch "$TOLD"
  fi
  return 1
}

# take_back: lets the node take jobs again where it drained itself, no job uses it, and what a job needs is there again.
take_back() {
  local shown reason
  if [[ ! -s $REASONS || -z $(find "$REASONS" -mmin "+$MINUTES_TO_RECOVER") ]]; then return 0; fi
  shown=$(slurm --oneliner show node "$SLURMD_NODENAME") || return 0
  if [[ $shown == *+DRAIN* ]]; then
    wait_for_processes "$shown" || return 0
    # DOWN: Slurm missed it while it booted.
    if [[ ! $shown =~ State=(IDLE|DOWN)[^\ ]*\+DRAIN ]] || ! has_passed; then return 0; fi
    while read -r reason; do
      # Slurm adds who gave the reason, and when.
      if [[ $shown != *"Reason=$reason ["* ]]; then continue; fi
      in_time "$SECONDS_OF_HEALTH_CHECK" cluster-node verify --at job-start >/dev/null || return 0
      slurm update nodename="$SLURMD_NODENAME" state=resume || return 1
      break
    done <"$REASONS"
  fi
  rm -f "$REASONS" "$TOLD"
}

# check MOMENT: drains the node and fails where `cluster-node verify` finds something.
check() {
  local said status=0
  said=$(in_time "$SECONDS_TO_ANSWER" cluster-node verify --at "$1") || status=$?
  if ((status == 0)); then return 0; fi
  if [[ -z $said ]]; then
    # The verification itself failed, which is no fault of the node. A job starts only where it has passed.
    if [[ $1 != job-start ]]; then return 0; fi
    said="cluster-node verify ended with exit status $status and said nothing"
  fi
  # What Slurm shows is one line; slurmd's log has every sentence, where the controller cannot be reached too.
  printf '%s\n' "$said" >&2
  drain "$(head -n 1 <<<"$said" | tr -cd '[:print:]' | cut -c 1-500)" || echo "the node could not be drained with this reason" >&2
  return 1
}

# begin_job: notes the job, after the files of the user's jobs before it are gone.
begin_job() {
  # A user who may read a lock may hold it, and with it the jobs of its owner.
  install -d -m 700 "$JOBS"
  (
    flock 9
    mkdir -p "$JOBS/$SLURM_JOB_UID"
    touch "$JOBS/$SLURM_JOB_UID/$SLURM_JOB_ID"
  ) 9>"$JOBS/$SLURM_JOB_UID.lock"
}

# end_job: removes what a user's jobs left in memory and on the root volume, with the last of them. AWS PCS takes no
# setting for Slurm's own remedy, https://slurm.schedmd.com/job_container_tmpfs.html. What a hang left behind is wanted
# after the job. find follows no link here: https://www.gnu.org/software/findutils/manual/html_mono/find.html#Security-Considerations
end_job() {
  if [[ ! -d $JOBS ]] || ((SLURM_JOB_UID < FIRST_USER)); then return 0; fi
  (
    flock 9
    rm -f "$JOBS/$SLURM_JOB_UID/$SLURM_JOB_ID"
    rmdir "$JOBS/$SLURM_JOB_UID" 2>/dev/null || exit 0
    # 1: the user has no process, as through ssh.
    in_time "$SECONDS_TO_CLEAN" pgrep --uid "$SLURM_JOB_UID" >/dev/null || none=$?
    if ((${none:-0} != 1)); then exit 0; fi
    places=() kept=()
    # Memory first: what is not removed in time stays until the end of another job of the user.
    for place in dev/shm tmp var/tmp; do
      own=$ROOT/$place/cdk-training-cluster-$SLURM_JOB_UID
      places+=("$ROOT/$place") kept+=(! -path "$own" ! -path "$own/*")
    done
    in_time "$SECONDS_TO_CLEAN" find "${places[@]}" -xdev -mindepth 1 -user "$SLURM_JOB_UID" "${kept[@]}" -delete || true
  ) 9>"$JOBS/$SLURM_JOB_UID.lock"
}
