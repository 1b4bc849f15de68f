# shellcheck shell=bash
# The end of the script that a node runs before slurmd starts; what stands before it wrote the files of FOLDER.
# It shares the GPUs too, which slurmd looks for once, when it starts.

# FOLDER is set, and these settings with it.
# shellcheck disable=SC2153 source=/dev/null
source "$FOLDER/settings"
chmod 755 "$FOLDER"/*.sh

if [[ -n $MIG_PROFILES ]]; then
  # Here and not by the unit, so that what it says of a failure is the message of this script.
  bash "$FOLDER/mig.sh"
  cat >"${ROOT:-}/etc/systemd/system/cdk-training-cluster-mig.service" <<UNIT
[Unit]
Description=Partitions of the node's GPUs, which a reboot removes
After=nvidia-persistenced.service nvidia-fabricmanager.service
Before=slurmd.service cdk-training-cluster-boot.service cdk-training-cluster-watch.service

[Service]
Type=oneshot
ExecStart=/bin/bash ${FOLDER#"${ROOT:-}"}/mig.sh

[Install]
WantedBy=multi-user.target
UNIT
  systemctl daemon-reload
  systemctl enable cdk-training-cluster-mig.service
fi

# https://docs.nvidia.com/deploy/mps/index.html
if [[ -n $MPS ]]; then
  cat >"${ROOT:-}/etc/systemd/system/cdk-training-cluster-mps.service" <<'UNIT'
[Unit]
Description=NVIDIA's Multi-Process Service, for jobs that share a GPU
Before=slurmd.service systemd-user-sessions.service

[Service]
Type=forking
# Before a session of a user begins, so that none puts a directory or a link of its own in the place of the pipes.
ExecStartPre=/bin/rm -rf /tmp/nvidia-mps
ExecStart=/usr/bin/nvidia-cuda-mps-control -d
ExecStop=/bin/sh -c 'echo quit | /usr/bin/nvidia-cuda-mps-control'

[Install]
WantedBy=multi-user.target
UNIT
  systemctl daemon-reload
  systemctl enable --now cdk-training-cluster-mps.service
fi
