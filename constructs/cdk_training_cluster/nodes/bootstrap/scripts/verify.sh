#!/bin/bash
# Verifies the node, which takes no job where it fails.
#   verify.sh         the node has been set up just now
#   verify.sh --boot  it was started again, and mounts the file system when that is used first
set -euo pipefail
# shellcheck source-path=SCRIPTDIR source=lib.sh
source ./lib.sh

if [[ ${1:-} == --boot && -n $MOUNT_SOURCE ]]; then
  bash mount.sh || log "the file system is not mounted, and the verification says so"
fi
exec "$ROOT/usr/local/bin/cluster-node" verify
