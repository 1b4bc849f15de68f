#!/bin/bash
# Slurm's HealthCheckProgram: drains the node, under a running job too, where a file asks for it or devices have gone.
# It asks no GPU, and no file system that answered before the job, so that it takes nothing from the job.
set -euo pipefail
# shellcheck source-path=SCRIPTDIR source=node.sh
source "${BASH_SOURCE[0]%/*}/node.sh"
check job
take_over
take_back
