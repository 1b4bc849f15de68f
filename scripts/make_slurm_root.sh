#!/bin/bash
# Unpacks Debian's Slurm and nftables, with all that they need, into a folder of its own: nothing is installed on this
# machine.
#   make_slurm_root.sh DIRECTORY   makes DIRECTORY/root, or says in DIRECTORY/missing why there is none
# Debian stable has no Slurm 25.11, with which a job on a failed node is requeued at once: hence the suite.
set -euo pipefail
SUITE=sid
PACKAGES=(slurmctld slurmd slurm-client base-files bash coreutils findutils gawk grep iproute2 mount needrestart nftables perl procps python3 sed util-linux)

mkdir -p "$1"
cd "$1"
rm -rf missing root root.new

missing() {
  echo "$1" >missing
  exit 0
}

command -v apt-get >/dev/null || missing "this machine has no apt, and no packages of Slurm"
[[ $(id -u) == 0 ]] || missing "only root makes namespaces and device nodes"
unshare --net --uts --pid --mount --fork true 2>/dev/null || missing "this machine lets root make no namespaces"
# The machine's own mirror, and the keys that it trusts for it.
# shellcheck disable=SC2016 # apt fills it in
mirror=$(apt-get indextargets --format '$(REPO_URI)' 'Created-By: Packages' 'Label: Debian' | head -n 1)
[[ -n $mirror ]] || missing "apt of this machine has no mirror of Debian"

mkdir -p lists/partial cache/archives/partial
echo "deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] $mirror $SUITE main" >sources.list
: >status
options=(-qq -o "Dir::Etc::sourcelist=$PWD/sources.list" -o Dir::Etc::sourceparts=/dev/null -o "Dir::State::lists=$PWD/lists"
  -o "Dir::State::status=$PWD/status" -o "Dir::Cache=$PWD/cache" -o Acquire::Languages=none
  -o APT::Keep-Downloaded-Packages=true -o APT::Sandbox::User=root)
if ! apt-get "${options[@]}" update 2>apt.log || ! apt-get "${options[@]}" --yes --no-install-recommends \
  --download-only install "${PACKAGES[@]}" >>apt.log 2>&1; then
  missing "apt found no Slurm in Debian $SUITE: $(tail -n 1 apt.log)"
fi
# First what makes /bin a link into /usr.
for package in cache/archives/base-files_*.deb cache/archives/*.deb; do dpkg-deb --extract "$package" root.new; done
# What the packages' own scripts would have done.
for program in slurmctld slurmd slurmstepd; do ln -s "$program-wlm" "root.new/usr/sbin/$program"; done
ln -sf gawk root.new/usr/bin/awk
echo 'root:x:0:0::/root:/bin/bash' >root.new/etc/passwd
echo 'root:x:0:' >root.new/etc/group
rm -rf root.new/etc/slurm lists cache
mkdir -p root.new/{etc/slurm,opt,srv,usr/local/bin}
mv root.new root
