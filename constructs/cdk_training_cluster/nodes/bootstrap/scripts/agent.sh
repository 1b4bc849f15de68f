#!/bin/bash
# Starts the CloudWatch agent with this node's configuration, in place of any other the image came with.
# https://docs.aws.amazon.com/AmazonCloudWatch/latest/monitoring/install-CloudWatch-Agent-commandline-fleet.html
set -euo pipefail
# shellcheck source-path=SCRIPTDIR source=lib.sh
source ./lib.sh
# shellcheck source=/dev/null
source ./downloads.settings

install_agent() {
  local manager architecture site package=$STATE_DIR/amazon-cloudwatch-agent.deb
  manager=$(package_manager)
  if [[ $manager == dnf ]]; then
    install amazon-cloudwatch-agent
    return
  fi
  architecture=$(dpkg --print-architecture)
  site=https://amazoncloudwatch-agent-$REGION.s3.$REGION.$URL_SUFFIX
  download "$site/ubuntu/$architecture/latest/amazon-cloudwatch-agent.deb" "$package"
  download "$site/ubuntu/$architecture/latest/amazon-cloudwatch-agent.deb.sig" "$package.sig"
  download "$site/assets/amazon-cloudwatch-agent.gpg" "$package.gpg"
  if ! command -v gpg >/dev/null; then install gnupg; fi
  is_signed "$package" "$CLOUDWATCH_AGENT_KEY" ||
    die "the CloudWatch agent's package is not signed by AWS's key $CLOUDWATCH_AGENT_KEY"
  install "$package"
  rm -f "$package" "$package.sig" "$package.gpg"
}

if ! command -v amazon-cloudwatch-agent-ctl >/dev/null; then install_agent; fi

fill agent.json "@NAMESPACE@=$METRIC_NAMESPACE" "@CLUSTER@=$CLUSTER" "@NODE_GROUP@=$NODE_GROUP" | write_file "$HOME_DIR/agent.json"
amazon-cloudwatch-agent-ctl -a fetch-config -m ec2 -s -c "file:$HOME_DIR/agent.json"
