#!/bin/bash
# Verifies the node. One that fails takes no job, and where another instance would not have its fault, Auto Scaling is
# asked to put that into its place.
#   verify.sh         the node has been set up just now
#   verify.sh --boot  it was started again, and mounts the file system when that is used first
set -euo pipefail
# shellcheck source-path=SCRIPTDIR source=lib.sh
source ./lib.sh

# What `cluster-node verify` ends with where the fault table asks for a reboot or another instance.
OTHER_HOST=3

if [[ ${1:-} == --boot && -n $MOUNT_SOURCE ]]; then
  bash mount.sh || log "the file system is not mounted, and the verification says so"
fi
status=0
"$ROOT/usr/local/bin/cluster-node" verify || status=$?
if ((status == 0)); then exit 0; fi
if [[ -z $LAUNCH_HOOK ]]; then
  log "the node is set up, and takes no job until it passes cluster-node verify"
  exit 0
fi
if ((status == OTHER_HOST)); then bash hook.sh --bad; fi
exit 1
