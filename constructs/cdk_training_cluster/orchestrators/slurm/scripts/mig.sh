#!/bin/bash
# Divides each GPU into partitions, at the set-up and at every boot, before anything opens a GPU.
# https://docs.nvidia.com/datacenter/tesla/mig-user-guide/getting-started-with-mig.html
set -euo pipefail
# MIG_PROFILES.
# shellcheck source=/dev/null
source "${BASH_SOURCE[0]%/*}/settings"

nvidia-smi --multi-instance-gpu=ENABLED
modes=$(nvidia-smi --query-gpu=mig.mode.current --format=csv,noheader)
if grep -qv Enabled <<<"$modes"; then
  echo "a GPU is not in MIG mode: something on the image uses it before it is divided" >&2
  exit 1
fi
# Where there are no partitions this fails, and there is nothing to remove.
nvidia-smi mig --destroy-compute-instance && nvidia-smi mig --destroy-gpu-instance || true
nvidia-smi mig --create-gpu-instance "$MIG_PROFILES" --default-compute-instance
