#!/bin/bash
# Runs the service that gives every user of the node the credentials of the jobs' role: `cluster-node credentials --help`.
set -euo pipefail
# shellcheck source-path=SCRIPTDIR source=lib.sh
source ./lib.sh

# Some versions of the AWS CLI end if they cannot write to their home directory.
sandbox=(NoNewPrivileges=yes ProtectSystem=strict ProtectHome=read-only PrivateTmp=yes Environment=HOME=/tmp PrivateDevices=yes
  CapabilityBoundingSet=CAP_NET_BIND_SERVICE "RestrictAddressFamilies=AF_INET AF_INET6 AF_UNIX AF_NETLINK")
# The AWS CLI of some images is a snap, which starts in no sandbox.
if [[ $(command -v aws) == /snap/* ]]; then sandbox=(); fi
write_file "$ROOT/etc/systemd/system/cdk-training-cluster-credentials.service" <<EOF
[Unit]
Description=Credentials of the jobs' role for the users of the training cluster's node
Wants=network-online.target
After=network-online.target

[Service]
ExecStart=/usr/local/bin/cluster-node credentials --role $JOB_ROLE --url $JOB_CREDENTIALS
LockPersonality=yes
RestrictRealtime=yes
SystemCallArchitectures=native
$(printf '%s\n' "${sandbox[@]}")
TasksMax=128
Restart=always
RestartSec=10

[Install]
WantedBy=multi-user.target
EOF
systemctl daemon-reload
systemctl enable cdk-training-cluster-credentials.service
systemctl restart cdk-training-cluster-credentials.service
# Scripts of the user may need them. A node that AWS STS does not answer is set up all the same.
retry 4 curl --fail --silent --max-time 5 --output /dev/null "$JOB_CREDENTIALS" ||
  log "there are no credentials for jobs yet: journalctl -u cdk-training-cluster-credentials; a VPC without a way out needs an endpoint for AWS STS"
