#!/bin/bash
# A node with EFA interfaces but without their driver would train over TCP, slowly, and without a message.
set -euo pipefail
# shellcheck source-path=SCRIPTDIR source=lib.sh
source ./lib.sh

modprobe efa || die "the EFA driver does not load: the image needs the EFA installer's packages, or set efa to False"
compgen -G "$ROOT/sys/class/infiniband/*" >/dev/null ||
  die "the EFA driver finds no device: the interfaces of the launch template and the driver do not fit"
