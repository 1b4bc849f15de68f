#!/bin/bash
# Removes what the jobs of a user leave, and looks at the devices after each job, so that the next one does not start on
# a node that the last one has lost a GPU of.
set -euo pipefail
# shellcheck source-path=SCRIPTDIR source=node.sh
source "${BASH_SOURCE[0]%/*}/node.sh"
end_job || echo "files of user $SLURM_JOB_UID stay on the node" >&2
check job-end
