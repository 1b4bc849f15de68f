#!/usr/bin/env bash
# Starts the training of training.service, in the folder `job` of the file system, on this node and at each of its
# boots: a script of `scripts_after` for nodes to come, and to be called on others, or to start a run again.
set -euo pipefail

job=${TRAINING_FILE_SYSTEM:-/fsx}/job
if [[ ! -f $job/training.service ]]; then
  echo "there is no $job/training.service yet, so nothing is trained"
  exit 0
fi
# The file system knows users by their number, which is the same on all nodes.
id training &>/dev/null || useradd --system --uid 640 --user-group --home-dir "$job" training
install -d -o training -g training "$job" ${CHECKPOINT_DIR:+"$CHECKPOINT_DIR"}
# A virtual environment uses the Python that it was made with, which lies on each node.
"${job%/job}/torch/bin/python3" --version || dnf install -y python3.12
install -m 644 "$job/training.service" /etc/systemd/system/training.service
systemctl daemon-reload
systemctl enable training.service
systemctl reset-failed training.service || true
# The verification comes after this script, and the training waits for it.
systemctl start --no-block training.service
