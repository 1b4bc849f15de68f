#!/bin/bash
# Puts the program cluster-node on every user's path, and wait-for-dataset for job scripts where there is a data set.
set -euo pipefail
# shellcheck source-path=SCRIPTDIR source=lib.sh
source ./lib.sh

# put_command NAME ARGUMENTS: with the system's Python and nothing else of what a job has activated.
put_command() {
  write_file "$ROOT/usr/local/bin/$1" <<EOF
#!/bin/sh
export CLUSTER_NODE_CLUSTER='$CLUSTER' CLUSTER_NODE_MOUNT_POINT='$MOUNT_POINT'
exec /usr/bin/python3 -I -c 'import sys; sys.path.insert(0, sys.argv.pop(1)); from cluster_node.__main__ import main; main()' "\${ROOT:-}${SCRIPTS_DIR#"$ROOT"}" $2 "\$@"
EOF
  chmod 755 "$ROOT/usr/local/bin/$1"
}

put_command cluster-node ""
if [[ -n $MOUNT_SOURCE ]]; then put_command wait-for-dataset wait-for-dataset; fi
