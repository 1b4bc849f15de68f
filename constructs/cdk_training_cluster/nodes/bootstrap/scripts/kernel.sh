#!/bin/bash
# Holds the kernel: another one than the image's would boot without Lustre client, EFA or accelerator driver.
set -euo pipefail
# shellcheck source-path=SCRIPTDIR source=lib.sh
source ./lib.sh

hold_apt() {
  local packages
  # Patterns that match nothing make dpkg-query fail, whatever the others match.
  mapfile -t packages < <(
    { dpkg-query -W -f '${db:Status-Abbrev} ${Package}\n' 'linux-aws*' 'linux-generic*' 'linux-image-*' \
      'linux-headers-*' 'linux-modules-*' 2>/dev/null || true; } | awk 'substr($1, 2, 1) == "i" { print $2 }'
  )
  if ((${#packages[@]} == 0)); then die "no kernel package is installed: dpkg-query names none"; fi
  # It does not wait for dpkg's lock, which a first boot's updates may hold for minutes.
  retry 11 apt-mark hold "${packages[@]}"
}

# https://dnf.readthedocs.io/en/latest/conf_ref.html: excludepkgs, of which exclude is an older name
EXCLUDED='^exclude(pkgs)?[[:space:]]*=(.*[[:space:],])?kernel\*([[:space:],]|$)'

hold_dnf() {
  local conf=$ROOT/etc/dnf/dnf.conf
  if grep -Eqs "$EXCLUDED" "$conf"; then return 0; fi
  if grep -Eqs '^exclude(pkgs)?[[:space:]]*=' "$conf"; then
    sed -E 's/^exclude(pkgs)?[[:space:]]*=.*/& kernel*/' "$conf" | write_file "$conf"
  else
    sed '/^\[main\]/a exclude=kernel*' "$conf" | write_file "$conf"
  fi
  grep -Eq "$EXCLUDED" "$conf" || die "$conf has no section [main]: the kernel cannot be held"
}

manager=$(package_manager)
"hold_$manager"
