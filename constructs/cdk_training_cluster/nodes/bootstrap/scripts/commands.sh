#!/bin/bash
# Puts the programs cluster-node and cluster-run on every user's path, and wait-for-dataset where there is a data set.
set -euo pipefail
# shellcheck source-path=SCRIPTDIR source=lib.sh
source ./lib.sh

# Root looks for programs in directories of root's, whatever environment sudo or su has kept.
PATHS=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin:/snap/bin

# put_command NAME ARGUMENTS: with the system's Python and nothing else of what a job has activated.
put_command() {
  write_file "$ROOT/usr/local/bin/$1" <<EOF
#!/bin/sh
export ROOT='$ROOT'
if [ "\$(id -u)" = 0 ]; then
  unset LD_LIBRARY_PATH AWS_CONTAINER_CREDENTIALS_FULL_URI
  export PATH="${ROOT:+\$PATH:}$PATHS"
fi
export CLUSTER_NODE_CLUSTER='$CLUSTER' CLUSTER_NODE_MOUNT_POINT='$MOUNT_POINT'
exec /usr/bin/python3 -I -c 'import sys; sys.path.insert(0, sys.argv.pop(1)); from cluster_node.__main__ import main; main()' "$SCRIPTS_DIR" $2 "\$@"
EOF
  chmod 755 "$ROOT/usr/local/bin/$1"
}

put_command cluster-node ""
if [[ -n $MOUNT_SOURCE ]]; then put_command wait-for-dataset wait-for-dataset; fi

# With the job's own Python, which has torch: that of torchrun, or else the first on the path.
write_file "$ROOT/usr/local/bin/cluster-run" <<EOF
#!/bin/sh
torchrun=\$(command -v torchrun)
python=\${torchrun%/*}/python3
if [ ! -x "\$python" ]; then python=python3; fi
if ! "\$python" -c 'import sys; sys.exit(sys.version_info < (3, 10))'; then
  echo "cluster-run: it needs Python 3.10 and torch, and \$(command -v "\$python") is older: activate the job's environment" >&2
  exit 64
fi
export PYTHONPATH="\${PYTHONPATH:+\$PYTHONPATH:}\${ROOT:-}${SCRIPTS_DIR#"$ROOT"}/job"
# Not with -m, which would take modules from the folder where it is called: other users may write there.
exec "\$python" -c 'import sys; sys.path = [*filter(None, sys.path)]; from cluster_job.launch import main; main()' "\$@"
EOF
chmod 755 "$ROOT/usr/local/bin/cluster-run"
