#!/bin/bash
# RDMA pins the memory it reads, and a data loader opens many files: logins and services need wider limits.
set -euo pipefail
# shellcheck source-path=SCRIPTDIR source=lib.sh
source ./lib.sh

# pam_limits leaves root out of "*".
for who in '*' root; do
  printf '%s - memlock unlimited\n%s - nofile 1048576\n' "$who" "$who"
done | write_file "$ROOT/etc/security/limits.d/90-cdk-training-cluster.conf"

printf '[Manager]\nDefaultLimitMEMLOCK=infinity\nDefaultLimitNOFILE=1048576\n' |
  write_file "$ROOT/etc/systemd/system.conf.d/90-cdk-training-cluster-limits.conf"
# Only a re-execution reads system.conf; services started from now on have the limits.
systemctl daemon-reexec
