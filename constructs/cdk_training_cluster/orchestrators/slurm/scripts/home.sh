#!/bin/bash
# Puts the homes of users on the file system, so that every node has the same ones. A home that is there stays as it is.
set -euo pipefail
# ROOT is empty on a node; tests set it to a directory of their own.
ROOT=${ROOT:-}
# shellcheck source=/dev/null
source "$ROOT/opt/cdk-training-cluster/settings"

homes=$MOUNT_POINT/home
if mountpoint --quiet "$ROOT/home"; then exit 0; fi
# Root on any node can write there. Behind a link, what is copied and mounted would be files of this node.
if [[ -L $ROOT$homes ]] || ! mkdir -p "$ROOT$homes" 2>/dev/null || [[ ! -O $ROOT$homes ]]; then
  echo "$homes must be a directory that root owns, and no link: correct it, and launch the node again" >&2
  exit 1
fi
for home in "$ROOT"/home/*/; do
  name=$(basename "$home")
  there=$ROOT$homes/$name
  if [[ ! -d $home || -e $there ]]; then continue; fi
  # All nodes start at once: each makes a copy of its own, and the first that is complete becomes the home.
  copy=$(mktemp --directory "$ROOT$homes/.copy-XXXXXX")
  cp --archive "${home%/}" "$copy/$name"
  if ! said=$(mv --no-target-directory "$copy/$name" "$there" 2>&1) && [[ ! -e $there ]]; then
    echo "$said" >&2
    exit 1
  fi
  rm -rf "$copy"
done
line="$homes /home none bind,nofail,x-systemd.requires-mounts-for=$MOUNT_POINT 0 0"
grep -qxF -- "$line" "$ROOT/etc/fstab" || printf '%s\n' "$line" >>"$ROOT/etc/fstab"
mount --bind "$ROOT$homes" "$ROOT/home"
