# shellcheck shell=bash
# The end of the script that a node runs before slurmd starts; what stands before it wrote the files of FOLDER.
# It shares the GPUs too, which slurmd looks for once, when it starts.

# FOLDER is set, and these settings with it.
# shellcheck disable=SC2153 source=/dev/null
source "$FOLDER/settings"
chmod 755 "$FOLDER"/*.sh

# https://docs.nvidia.com/datacenter/tesla/mig-user-guide/getting-started-with-mig.html
if [[ -n $MIG_PROFILES ]]; then
  nvidia-smi --multi-instance-gpu=ENABLED
  modes=$(nvidia-smi --query-gpu=mig.mode.current --format=csv,noheader)
  if grep -qv Enabled <<<"$modes"; then
    echo "a GPU is not in MIG mode: something on the image uses it before the node is set up" >&2
    exit 1
  fi
  # Without partitions of an earlier boot this fails, and there is nothing to remove.
  nvidia-smi mig --destroy-compute-instance && nvidia-smi mig --destroy-gpu-instance || true
  nvidia-smi mig --create-gpu-instance "$MIG_PROFILES" --default-compute-instance
fi

# https://docs.nvidia.com/deploy/mps/index.html
if [[ -n $MPS ]]; then
  cat >"${ROOT:-}/etc/systemd/system/cdk-training-cluster-mps.service" <<'UNIT'
[Unit]
Description=NVIDIA's Multi-Process Service, for jobs that share a GPU
Before=slurmd.service

[Service]
Type=forking
ExecStart=/usr/bin/nvidia-cuda-mps-control -d
ExecStop=/bin/sh -c 'echo quit | /usr/bin/nvidia-cuda-mps-control'

[Install]
WantedBy=multi-user.target
UNIT
  systemctl daemon-reload
  systemctl enable --now cdk-training-cluster-mps.service
fi
