#!/bin/bash
# Mounts the file system through /etc/fstab, where it is mounted on first use after each boot, and once now.
# https://docs.aws.amazon.com/fsx/latest/LustreGuide/mount-fs-auto-mount-onreboot.html
set -euo pipefail
# shellcheck source-path=SCRIPTDIR source=lib.sh
source ./lib.sh

options=defaults,nosuid,nodev,nofail,relatime,flock,_netdev,x-systemd.automount,x-systemd.requires=systemd-networkd-wait-online.service
if [[ -n ${MOUNT_EFA:-} ]]; then
  service=configure-efa-fsx-lustre-client.service
  options+=,x-systemd.requires=$service,x-systemd.after=$service
fi
# nosuid and nodev: root in a pod, or on a node of another cluster, is root on the file system, but not on this node.
# relatime, not noatime: FSx releases what has not been read for a while by its access time.
set_fstab "$MOUNT_POINT" "$MOUNT_SOURCE $MOUNT_POINT lustre $options 0 0"
mkdir -p "$ROOT$MOUNT_POINT"
systemctl daemon-reload
automount_unit=$(systemd-escape --path --suffix=automount "$MOUNT_POINT")
mount_unit=$(systemd-escape --path --suffix=mount "$MOUNT_POINT")
systemctl start "$automount_unit"
# The automount unit always starts; only the mount itself shows whether the file system answers.
retry 5 systemctl start "$mount_unit" ||
  die "$MOUNT_SOURCE cannot be mounted at $MOUNT_POINT: look at the security groups and the file system's state"
