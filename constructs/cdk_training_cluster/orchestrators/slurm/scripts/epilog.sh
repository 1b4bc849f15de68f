#!/bin/bash
# Looks at the devices after each job, so that the next one does not start on a node that the last one has lost a GPU of.
set -euo pipefail
# shellcheck source-path=SCRIPTDIR source=node.sh
source "${BASH_SOURCE[0]%/*}/node.sh"
check job-end
