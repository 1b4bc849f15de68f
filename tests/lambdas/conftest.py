"""The environment in which Lambda code is imported: what the constructs set, and no AWS but a local one."""

import os

os.environ.update(
    POWERTOOLS_METRICS_NAMESPACE="CdkTrainingCluster/Functions",
    POWERTOOLS_SERVICE_NAME="cluster_power",
    AWS_DEFAULT_REGION="us-east-1",
    AWS_EC2_METADATA_DISABLED="true",
)
for variable in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
    os.environ[variable] = "testing"
