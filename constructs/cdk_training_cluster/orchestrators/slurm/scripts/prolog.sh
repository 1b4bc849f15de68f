#!/bin/bash
# Verifies the node before each job. One that fails is drained with its reason, and Slurm starts the job elsewhere.
# https://slurm.schedmd.com/prolog_epilog.html advises against Slurm's commands here: they run only where a node fails.
set -euo pipefail
# shellcheck source-path=SCRIPTDIR source=node.sh
source "${BASH_SOURCE[0]%/*}/node.sh"
begin_job
check job-start
