#!/bin/bash
# Runs the watchdog of the node as a service: see `cluster-node watch --help`.
set -euo pipefail
# shellcheck source-path=SCRIPTDIR source=lib.sh
source ./lib.sh

# It is started again where it does not answer.
write_file "$ROOT/etc/systemd/system/cdk-training-cluster-watch.service" <<'UNIT'
[Unit]
Description=Watchdog of the training cluster's node
Wants=network-online.target
After=network-online.target

[Service]
Type=notify
ExecStart=/usr/local/bin/cluster-node watch
WatchdogSec=300
# The AWS CLI of some images is a snap, which starts neither with NoNewPrivileges nor in a file system of its own, and
# the service reads the kernel's log and all devices.
LockPersonality=yes
RestrictRealtime=yes
SystemCallArchitectures=native
TasksMax=256
Restart=always
RestartSec=10
Nice=10

[Install]
WantedBy=multi-user.target
UNIT
systemctl daemon-reload
systemctl enable cdk-training-cluster-watch.service
systemctl restart cdk-training-cluster-watch.service
