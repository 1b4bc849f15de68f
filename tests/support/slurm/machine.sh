#!/bin/bash
# A network of virtual nodes on one machine. Each has mounts of its own, and in them its devices and its state.
#   machine.sh boot ROOT WORK     becomes the first process of the namespaces, over a writable view of ROOT
#   machine.sh up NODE [OPTION]   boots a node
#   machine.sh down NODE          takes a node's power
#   machine.sh resume|suspend NODES   as AWS PCS launches and ends instances
set -euo pipefail
export PATH=/usr/sbin:/usr/bin:/sbin:/bin LC_ALL=C
CONTROLLER=10.99.0.1
NODES=/srv/nodes

boot() {
  local root=$1 work=$2 device
  mount --make-rprivate /
  mount -t tmpfs tmpfs "$work"
  mkdir "$work"/{upper,work,root}
  mount -t overlay overlay -o "lowerdir=$root,upperdir=$work/upper,workdir=$work/work" "$work/root"
  cd "$work/root"
  mount -t proc proc proc
  for each in dev run srv tmp; do mount -t tmpfs tmpfs "$each"; done
  for device in null zero full random urandom tty; do cp -a "/dev/$device" dev/; done
  mkdir srv/nodes srv/state
  cp "$0" srv/machine.sh
  hostname controller
  ip link set lo up
  # Slurm refuses the loopback's own address.
  ip address add "$CONTROLLER/32" dev lo
  echo "$CONTROLLER controller" >etc/hosts
  head -c 64 /dev/urandom >etc/slurm/slurm.key
  chmod 600 etc/slurm/slurm.key
  # Bash as the first process takes in the processes whose parents have ended.
  # shellcheck disable=SC2016
  exec chroot . /bin/bash -c 'touch /srv/booted; while :; do sleep 1000 & wait $!; done'
}

up() {
  local home=$NODES/$1
  mkdir -p "$home"/{run/slurm,spool,state} /srv/spool /var/lib/cdk-training-cluster
  # shellcheck disable=SC2016 # the inner shell expands them
  unshare --mount --propagation unchanged /bin/bash -c '
    set -euo pipefail
    cd "$1"
    for each in dev opt run sys; do mount --bind "$each" "/$each"; done
    mount --bind spool /srv/spool
    mount --bind state /var/lib/cdk-training-cluster
    mount --bind /srv/bin /usr/local/bin
    bash ./install.sh
    exec slurmd --conf-server "$2:6817" -N "${@:3}"' bash "$home" "$CONTROLLER" "$@"
}

# Ends all that shares the mounts of a node's slurmd, as a lost host does.
down() {
  local slurmd mounts each
  slurmd=$(<"$NODES/$1/run/slurmd.pid")
  mounts=$(readlink "/proc/$slurmd/ns/mnt")
  for each in /proc/[0-9]*; do
    if [[ $(readlink "$each/ns/mnt" 2>/dev/null || true) == "$mounts" ]]; then kill -KILL "${each#/proc/}" || true; fi
  done
  rm -rf "$NODES/$1/run/slurm" "$NODES/$1/run/cdk-training-cluster"
}

resume() {
  local node
  for node in $(scontrol show hostnames "$1"); do
    echo "$(date +%s) resume $node" >>/srv/power.log
    if [[ -e $NODES/$node/never-boots ]]; then continue; fi
    # -b: it says that it has booted.
    setsid /srv/machine.sh up "$node" -b </dev/null >>/srv/boot.log 2>&1 || true
  done
}

suspend() {
  local node
  for node in $(scontrol show hostnames "$1"); do
    echo "$(date +%s) suspend $node" >>/srv/power.log
    if [[ -e $NODES/$node/run/slurmd.pid ]]; then down "$node" || true; fi
  done
}

"$@"
