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

# What jobs may know of the cluster; what is empty is left out.
python3 -IS - "$CLUSTER" "$NODE_GROUP" "$REGION" "${RUNS_TABLE:-}" "$MOUNT_POINT" "$METRIC_NAMESPACE" \
  "${NODE_HOUR_USD:-}" "${ENVIRONMENT[@]}" <<'PYTHON' | write_file "$ROOT/etc/cdk-training-cluster/job.json"
import json, sys

names = ("cluster", "node_group", "region", "runs_table", "mount_point", "metric_namespace", "node_hour_usd")
variables = dict(variable.split("=", 1) for variable in sys.argv[1 + len(names) :])
facts = {
    **dict(zip(names, sys.argv[1:])),
    "checkpoint_dir": variables.get("CHECKPOINT_DIR"),
    "checkpoint_url": variables.get("CHECKPOINT_URL"),
}
print(json.dumps({name: value for name, value in facts.items() if value}, indent=2))
PYTHON
chmod 644 "$ROOT/etc/cdk-training-cluster/job.json"
