#!/bin/bash
# Mounts the instance's local NVMe disks as one file system at the path that AWS's Deep Learning images use, and
# arranges for that to happen again at each boot, because a stop and start brings empty disks.
set -euo pipefail
# shellcheck source-path=SCRIPTDIR source=lib.sh
source ./lib.sh

MOUNT=/opt/dlami/nvme
LABEL=local-nvme
# https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/instance-store-volumes.html: EBS volumes have another model
MODEL='Amazon EC2 NVMe Instance Storage'

EXPECTED=${EXPECTED:-}
online=
if [[ -n $LAUNCH_HOOK$EXPECTED ]]; then online=$'Wants=network-online.target\nAfter=network-online.target\n'; fi
write_file "$ROOT/etc/systemd/system/cdk-training-cluster-boot.service" <<EOF
[Unit]
Description=What a training node makes anew at each boot
After=local-fs.target dlami-nvme.service nvidia-fabricmanager.service nvidia-persistenced.service
# No job starts beside the tests of a verification.
Before=slurmd.service
$online
[Service]
Type=oneshot
TimeoutStartSec=45min
ExecStart=/bin/bash ${SCRIPTS_DIR#"$ROOT"}/bootstrap.sh --boot

[Install]
WantedBy=multi-user.target
EOF
systemctl daemon-reload
systemctl enable cdk-training-cluster-boot.service

if [[ -n ${DISKS_TAKEN:-} ]]; then
  log "another program takes the local NVMe disks"
  exit 0
fi

is_mounted() {
  findmnt --noheadings --mountpoint "$MOUNT" >/dev/null
}

# Sets disks to the local NVMe disks, and in_use if something is on one of them.
find_disks() {
  local line name model rest
  disks=() in_use=
  while read -r line; do
    if [[ $line =~ ^NAME=\"([^\"]*)\"\ MODEL=\"([^\"]*)\"\ FSTYPE=\"([^\"]*)\"\ PTTYPE=\"([^\"]*)\" ]]; then
      name=${BASH_REMATCH[1]} model=${BASH_REMATCH[2]} rest=${BASH_REMATCH[3]}${BASH_REMATCH[4]}
      if [[ $model =~ ^$MODEL\ *$ ]]; then
        disks+=("$name")
        if [[ -n $rest ]]; then in_use=$name; fi
      fi
    fi
  done <<<"$1"
}

listing=$(lsblk --nodeps --paths --pairs --output NAME,MODEL,FSTYPE,PTTYPE)
find_disks "$listing"
if ((${#disks[@]} == 0)); then
  log "no local NVMe disks"
  exit 0
fi
if ! is_mounted && systemctl is-enabled --quiet dlami-nvme.service 2>/dev/null; then
  # The image's own unit may still be at work: starting it waits for it. It ends well even when it fails.
  systemctl start dlami-nvme.service
  if ! is_mounted; then die "dlami-nvme.service did not mount $MOUNT: see journalctl -u dlami-nvme"; fi
fi
if is_mounted; then
  log "$MOUNT is mounted"
  exit 0
fi

if ! blkid --label "$LABEL" >/dev/null; then
  if [[ -n $in_use ]]; then
    log "$in_use holds something already: the local NVMe disks are left as they are"
    exit 0
  fi
  if ! command -v mkfs.xfs >/dev/null; then install xfsprogs; fi
  device=${disks[0]}
  if ((${#disks[@]} > 1)); then
    if ! command -v mdadm >/dev/null; then install mdadm; fi
    device=/dev/md/$LABEL
    mdadm --create "$device" --run --level=0 --raid-devices="${#disks[@]}" "${disks[@]}"
  fi
  mkfs.xfs -q -L "$LABEL" "$device"
fi
set_fstab "$MOUNT" "LABEL=$LABEL $MOUNT xfs defaults,noatime,nofail,x-systemd.device-timeout=30s 0 0"
systemctl daemon-reload
mkdir -p "$ROOT$MOUNT"
# At a later boot systemd may be quicker: it has waited for the file system since it read /etc/fstab.
mount "$MOUNT" || is_mounted
# As on AWS's images: every user's jobs may write there.
chmod 1777 "$ROOT$MOUNT"
