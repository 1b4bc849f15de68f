#!/bin/bash
# Runs a service that tells the CloudWatch agent how busy the NeuronCores are.
set -euo pipefail
# shellcheck source-path=SCRIPTDIR source=lib.sh
source ./lib.sh
# shellcheck source=/dev/null
source ./neuron.settings

MONITOR=/opt/aws/neuron/bin/neuron-monitor
if [[ ! -x $ROOT$MONITOR ]]; then die "$MONITOR is missing: the image needs the package aws-neuronx-tools"; fi

home=${SCRIPTS_DIR#"$ROOT"}
textfile=
if [[ -f prometheus.json ]]; then
  mkdir -p "$HOME_DIR/collector/textfiles"
  textfile=${HOME_DIR#"$ROOT"}/collector/textfiles/neuron.prom
fi
write_file "$ROOT/etc/systemd/system/cdk-training-cluster-neuron.service" <<EOF
[Unit]
Description=NeuronCore utilization for the CloudWatch agent
After=amazon-cloudwatch-agent.service

[Service]
ExecStart=/bin/bash -c '$MONITOR -c $home/neuron-monitor.json | exec python3 -IS $home/neuron_statsd.py $NEURON_STATSD_PORT $NEURON_METRIC $CLUSTER_DIMENSION:$CLUSTER,$NODE_GROUP_DIMENSION:$NODE_GROUP $NEURON_DEVICES${textfile:+ $textfile}'
${textfile:+ExecStopPost=/bin/rm -f $textfile}
NoNewPrivileges=yes
ProtectSystem=full
ProtectHome=yes
LockPersonality=yes
RestrictRealtime=yes
TasksMax=256
Restart=always
RestartSec=10

[Install]
WantedBy=multi-user.target
EOF
systemctl daemon-reload
systemctl enable cdk-training-cluster-neuron.service
systemctl restart cdk-training-cluster-neuron.service
