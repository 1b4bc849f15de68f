#!/bin/bash
# Puts the homes of users on the file system, so that every node has the same ones. What a home holds there stays.
set -euo pipefail
# shellcheck source=/dev/null
source /opt/cdk-training-cluster/settings

homes=$MOUNT_POINT/home
if mountpoint --quiet /home; then exit 0; fi
mkdir -p "$homes"
cp --archive --no-clobber /home/. "$homes"
line="$homes /home none bind,nofail,x-systemd.requires-mounts-for=$MOUNT_POINT 0 0"
grep -qxF -- "$line" /etc/fstab || printf '%s\n' "$line" >>/etc/fstab
mount --bind "$homes" /home
