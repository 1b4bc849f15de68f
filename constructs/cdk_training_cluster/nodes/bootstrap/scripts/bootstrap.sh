#!/bin/bash
# Sets a node up, step by step. The first step that fails ends it, is reported, and is named.
#   bootstrap.sh         everything: the first start, or again by hand
#   bootstrap.sh --boot  what does not outlive a stop and start: local NVMe, the verification, and what Auto Scaling was
#                        told; also by hand, where an operator has mended what the verification failed at:
#                        systemctl restart cdk-training-cluster-boot
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"
# shellcheck source-path=SCRIPTDIR source=lib.sh
source ./lib.sh

step=settings
reported=
trap 'if [[ -z $reported ]]; then report_failure "$step" "bootstrap.sh ended early"; fi' EXIT

# last_words LOG_SIZE: the last lines of the log beyond that size, as one line.
last_words() {
  tail -c "+$(($1 + 1))" "$LOG" | { grep -v '^[[:space:]]*$' || true; } | tail -n 3 | paste -sd ' ' | cut -c 1-500
}

# attempt STEP COMMAND...: sets message where it fails.
attempt() {
  step=$1
  local log_size status
  log "step $step" >>"$LOG"
  log_size=$(stat -c %s "$LOG")
  # Into a file and not through a pipe: what a user's script leaves running would keep a pipe open for ever.
  if "${@:2}" >>"$LOG" 2>&1 </dev/null; then return 0; else status=$?; fi
  message=$(last_words "$log_size")
  message=${message:-it said nothing and ended with exit status $status}
  return "$status"
}

# report [counted]
report() {
  reported=yes
  report_failure "$step" "$message" "$@" 2>&1 | tee -a "$LOG" >&2
}

# run STEP COMMAND...
run() {
  if attempt "$@"; then return 0; fi
  report
  exit 1
}

# run_user_scripts before|after SOURCE...
run_user_scripts() {
  local when=$1 number=0 source rest name
  shift
  for source in "$@"; do
    number=$((number + 1))
    rest=${source#* }
    name=${rest#* }
    run "$when: $name" bash user_script.sh "${source%% *}" "${rest%% *}" "$when-$number-$name"
  done
}

# What `cluster-node verify` ends with where the fault table asks for a reboot or another instance.
OTHER_HOST=3

# verify [--boot]: a node that fails takes no job, and where another instance would not have its fault, Auto Scaling is
# asked to put that into its place.
verify() {
  local status=0 drained=$ROOT/run/cdk-training-cluster/drain/verify
  attempt verify bash verify.sh "$@" || status=$?
  if ((status == 0)); then return; fi
  if [[ -s $drained ]]; then message=$(head -n 1 "$drained"); else drained=; fi
  # Of a node whose set-up failed, the state says so still: that is what an operator has to mend. A verification that says
  # why it failed has counted that itself, and has an alarm of its own.
  if [[ -f $COMPLETE ]]; then report "${drained:+counted}"; fi
  reported=yes
  if ((status == OTHER_HOST)) && [[ -n $LAUNCH_HOOK ]]; then bash hook.sh --bad >>"$LOG" 2>&1 || true; fi
  exit 1
}

# finish [--boot]
finish() {
  if [[ -n ${EXPECTED:-} ]]; then verify "$@"; fi
  step=report
  if [[ -f $COMPLETE ]]; then report_state ready "" ""; fi
  if (($# == 0)); then to_console "ready"; fi
  # The last step: the node may be stopped at once.
  if [[ -n $LAUNCH_HOOK ]]; then run hook bash hook.sh "$@"; fi
  reported=yes
}

mkdir -p "${LOG%/*}" "$STATE_DIR"
# A user's script may print a password, and users of the node are not its readers.
(umask 077 && touch "$LOG")
chmod 600 "$LOG"
if [[ ${1:-} == --boot ]]; then
  if [[ -s $SET_UP ]] && find_instance && [[ $(<"$SET_UP") != "$instance" ]]; then
    log "the image was made of $(<"$SET_UP"): $instance is set up first" >>"$LOG"
    reported=yes
    exit 0
  fi
  # What failed at an earlier boot is tried again now.
  if [[ -f $COMPLETE ]]; then report_state running "" "" || log "the state could not be written"; fi
  if [[ -n ${JOB_ROLE:-} ]]; then run metadata bash metadata.sh; fi
  run nvme bash nvme.sh
  finish --boot
  exit 0
fi

report_state running "" ""
rm -f "$SET_UP" "$COMPLETE"
run updates bash updates.sh pause
# Scripts of an orchestrator call the program.
run commands bash commands.sh
if [[ -n ${JOB_ROLE:-} ]]; then
  run metadata bash metadata.sh
  run credentials bash credentials.sh
fi
run_user_scripts before "${SCRIPTS_BEFORE[@]}"
run limits bash limits.sh
run kernel bash kernel.sh
run nvme bash nvme.sh
if [[ -n $EFA ]]; then run efa bash efa.sh; fi
if [[ -n $MOUNT_SOURCE ]]; then
  run lustre bash lustre.sh
  if [[ -n ${MOUNT_EFA:-} ]]; then run lustre-efa bash lustre_efa.sh; fi
  run mount bash mount.sh
fi
run environment bash environment.sh
if [[ -f agent.json ]]; then run agent bash agent.sh; fi
if [[ -f neuron-monitor.json ]]; then run neuron bash neuron.sh; fi
if [[ -n ${UTILIZATION_COMMAND:-} ]]; then run utilization bash utilization.sh; fi
if [[ -f prometheus.json ]]; then run collector bash collector.sh enable; fi
run_user_scripts after "${SCRIPTS_AFTER[@]}"
run updates bash updates.sh resume
# It asks the GPUs, which scripts may divide.
run watch bash watch.sh
# A node that fails its verification has been set up: a later one that passes is all that it lacks.
write_file "$COMPLETE" </dev/null
if [[ -n $LAUNCH_HOOK ]]; then run hook bash hook.sh --set-up; fi
finish
