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

{
  for variable in "${ENVIRONMENT[@]}"; do
    printf 'export %s=%s\n' "${variable%%=*}" "$(quote_for_shell "${variable#*=}")"
  done
  # A service would have it too, and root's services need the nodes' role.
  if [[ -n ${JOB_ROLE:-} ]]; then
    # shellcheck disable=SC2016 # the login shell finds out whose it is
    printf '[ "$(id -u)" = 0 ] || export AWS_CONTAINER_CREDENTIALS_FULL_URI=%s\n' "$JOB_CREDENTIALS"
  fi
} | write_file "$ROOT/etc/profile.d/cdk-training-cluster.sh"

{
  echo '[Manager]'
  for variable in "${ENVIRONMENT[@]}"; do
    printf 'DefaultEnvironment=%s\n' "$(quote_for_systemd "$variable")"
  done
} | write_file "$ROOT/etc/systemd/system.conf.d/90-cdk-training-cluster-environment.conf"
systemctl daemon-reexec

# What jobs may know of the cluster; what is empty is left out.
python3 -IS - "$CLUSTER" "$NODE_GROUP" "$REGION" "${RUNS_TABLE:-}" "$MOUNT_POINT" \
  "${NODE_HOUR_USD:-}" "${JOB_ROLE:+$JOB_CREDENTIALS}" "${ENVIRONMENT[@]}" <<'PYTHON' | write_file "$ROOT/etc/cdk-training-cluster/job.json"
import json, sys

names = ("cluster", "node_group", "region", "runs_table", "mount_point", "node_hour_usd", "credentials_url")
variables = dict(variable.split("=", 1) for variable in sys.argv[1 + len(names) :])
facts = {
    **dict(zip(names, sys.argv[1:])),
    "checkpoint_dir": variables.get("CHECKPOINT_DIR"),
    "checkpoint_url": variables.get("CHECKPOINT_URL"),
}
print(json.dumps({name: value for name, value in facts.items() if value}, indent=2))
PYTHON
chmod 644 "$ROOT/etc/cdk-training-cluster/job.json"
