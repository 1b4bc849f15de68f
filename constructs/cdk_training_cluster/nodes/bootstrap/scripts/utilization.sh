#!/bin/bash
# Runs a service that tells the CloudWatch agent how busy the accelerators are, as the node group's command says it.
set -euo pipefail
# shellcheck source-path=SCRIPTDIR source=lib.sh
source ./lib.sh
# shellcheck source=/dev/null
source ./utilization.settings

home=${SCRIPTS_DIR#"$ROOT"}
# In a file, so that no character of it means anything to systemd.
write_file "$HOME_DIR/utilization-command" <<<"$UTILIZATION_COMMAND"
write_file "$ROOT/etc/systemd/system/cdk-training-cluster-utilization.service" <<EOF
[Unit]
Description=Utilization of accelerators for the CloudWatch agent
After=amazon-cloudwatch-agent.service

[Service]
ExecStart=/usr/bin/env python3 -IS $home/utilization_statsd.py ${HOME_DIR#"$ROOT"}/utilization-command $ACCELERATORS $SECONDS_EACH $STATSD_PORT $METRIC $CLUSTER_DIMENSION:$CLUSTER,$NODE_GROUP_DIMENSION:$NODE_GROUP
Restart=always
RestartSec=10

[Install]
WantedBy=multi-user.target
EOF
systemctl daemon-reload
systemctl enable cdk-training-cluster-utilization.service
systemctl restart cdk-training-cluster-utilization.service
