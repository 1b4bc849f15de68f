#!/bin/bash
# Installs the FSx for Lustre client where the image has none, as AWS's Neuron images do.
# https://docs.aws.amazon.com/fsx/latest/LustreGuide/install-lustre-client.html
set -euo pipefail
# shellcheck source-path=SCRIPTDIR source=lib.sh
source ./lib.sh

add_apt_repository() {
  local keyring=$ROOT/usr/share/keyrings/fsx-ubuntu-public-key.gpg key codename
  codename=$(os_release VERSION_CODENAME)
  key=$(mktemp)
  download "https://fsx-lustre-client-repo-public-keys.s3.amazonaws.com/fsx-ubuntu-public-key.asc" "$key"
  gpg --dearmor <"$key" | write_file "$keyring"
  rm -f "$key"
  write_file "$ROOT/etc/apt/sources.list.d/fsxlustreclientrepo.list" <<EOF
deb [signed-by=${keyring#"$ROOT"}] https://fsx-lustre-client-repo.s3.amazonaws.com/ubuntu $codename main
EOF
}

kernel=$(uname -r)
if ! command -v mount.lustre >/dev/null; then
  manager=$(package_manager)
  if [[ $manager == dnf ]]; then
    install lustre-client
  else
    add_apt_repository
    # The modules of this very kernel: the package without a version would bring another kernel along.
    install "lustre-client-modules-$kernel" ||
      die "there is no Lustre client for kernel $kernel: use an image whose kernel FSx for Lustre supports"
  fi
  command -v mount.lustre >/dev/null || die "the Lustre client for kernel $kernel came without mount.lustre"
fi
modprobe lustre || die "the Lustre client does not fit kernel $kernel: use an image whose kernel FSx for Lustre supports"
