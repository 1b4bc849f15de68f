#!/bin/bash
# Runs one of the user's scripts: user_script.sh S3_URL SHA256 FILE_NAME
set -euo pipefail
# shellcheck source-path=SCRIPTDIR source=lib.sh
source ./lib.sh

script=$HOME_DIR/user-scripts/$3
mkdir -p "${script%/*}"
# Such a script may hold a password.
chmod 700 "${script%/*}"
# A later deployment permits its own scripts only: what was fetched once is what runs again.
if [[ ! -s $script ]]; then
  # A set-up that is interrupted before the comparison leaves no script that the next one runs.
  retry 5 aws s3 cp --only-show-errors --region "$REGION" "$1" "$script.new"
  check_sha256 "$script.new" "$2" || die "$1 is not the file of the deployment: look at who changed the bucket of assets"
  mv "$script.new" "$script"
fi
chmod 0755 "$script"
for variable in "${ENVIRONMENT[@]}"; do export "${variable?}"; done
export TRAINING_CLUSTER=$CLUSTER TRAINING_NODE_GROUP=$NODE_GROUP TRAINING_FILE_SYSTEM=$MOUNT_POINT
# What is granted to the cluster is granted to the jobs' role.
if [[ -n ${JOB_ROLE:-} ]]; then export AWS_CONTAINER_CREDENTIALS_FULL_URI=$JOB_CREDENTIALS; fi
cd "$ROOT/"
exec "$script"
