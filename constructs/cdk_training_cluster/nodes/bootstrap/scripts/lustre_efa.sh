#!/bin/bash
# Lets the Lustre client reach an EFA-enabled file system through the node's Elastic Fabric Adapters. AWS's own script
# configures them, and makes a service that does so again after each boot.
# https://docs.aws.amazon.com/fsx/latest/LustreGuide/configure-efa-clients.html
set -euo pipefail
# shellcheck source-path=SCRIPTDIR source=lib.sh
source ./lib.sh

name=configure-efa-fsx-lustre-client
# Read whole: a pipe to grep -q would end lnetctl with SIGPIPE at the first match.
has_efa() {
  [[ $(lnetctl net show) == *@efa* ]]
}

if [[ ! -f $ROOT/etc/systemd/system/$name.service ]] || ! has_efa; then
  download "https://docs.aws.amazon.com/fsx/latest/LustreGuide/samples/$name.zip" "$HOME_DIR/$name.zip"
  python3 -m zipfile -e "$HOME_DIR/$name.zip" "$HOME_DIR"
  # How interfaces are spread over CPUs is read when the modules load: loaded before, they would use a few of them only.
  lustre_rmmod
  (cd "$HOME_DIR/$name" && bash ./setup.sh) ||
    die "AWS's script could not configure the Lustre client for EFA: the image's kernel and the instance type must support it"
fi
has_efa ||
  die "the Lustre client has no EFA interface: see journalctl -u $name, or use a file system without EFA"
