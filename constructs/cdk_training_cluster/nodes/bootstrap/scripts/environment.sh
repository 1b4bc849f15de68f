#!/bin/bash
# Gives login shells and services the variables that the node group sets.
set -euo pipefail
# shellcheck source-path=SCRIPTDIR source=lib.sh
source ./lib.sh

# For sh, which knows single quotes and nothing finer.
quote_for_shell() {
  printf "'%s'" "${1//\'/\'\\\'\'}"
}

# https://www.freedesktop.org/software/systemd/man/latest/systemd.exec.html#Environment=
quote_for_systemd() {
  local text=${1//\\/\\\\}
  text=${text//\"/\\\"}
  printf '"%s"' "${text//%/%%}"
}

for variable in "${ENVIRONMENT[@]}"; do
  printf 'export %s=%s\n' "${variable%%=*}" "$(quote_for_shell "${variable#*=}")"
done | write_file "$ROOT/etc/profile.d/cdk-training-cluster.sh"

{
  echo '[Manager]'
  for variable in "${ENVIRONMENT[@]}"; do
    printf 'DefaultEnvironment=%s\n' "$(quote_for_systemd "$variable")"
  done
} | write_file "$ROOT/etc/systemd/system.conf.d/90-cdk-training-cluster-environment.conf"
systemctl daemon-reexec
