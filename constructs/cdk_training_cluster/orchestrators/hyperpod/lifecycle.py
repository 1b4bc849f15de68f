"""The lifecycle script of a node group: it runs what a parameter holds, and never fails.

HyperPod downloads all that lies under a prefix of a bucket, with the nodes' role, and runs one file of it. The prefix
here holds one file, whose text depends on the parameter's name alone: a new version of the library changes the
parameter, and leaves the HyperPod cluster as it is. Buckets whose names start with `sagemaker-` are those that AWS's
managed policy lets nodes read; here the role names the object itself.

https://docs.aws.amazon.com/sagemaker/latest/dg/sagemaker-hyperpod-lifecycle-best-practices-slurm.html
"""

import hashlib
import tempfile
from pathlib import Path
from typing import Final

from aws_cdk import (
    AssetStaging,
    FileAssetLocation,
    FileAssetPackaging,
    Stack,
)
from aws_cdk import aws_iam as iam
from aws_cdk import aws_ssm as ssm
from constructs import Construct

from cdk_training_cluster.core.conditions import HERE
from cdk_training_cluster.nodes.bootstrap.node_bootstrap import failure_metric
from cdk_training_cluster.orchestrators.hyperpod.settings import HyperPodOrchestration
from cluster_contract.metrics import node_namespace

MAX_PARAMETER_BYTES: Final = 8192
"""https://docs.aws.amazon.com/systems-manager/latest/userguide/parameter-store-advanced-parameters.html"""

# A script that fails costs its run, and HyperPod tries the next node with the same script: what a node lacks is
# reported by its set-up, and the node stays to be looked at.
# https://docs.aws.amazon.com/sagemaker/latest/dg/sagemaker-hyperpod-scaling-slurm.html (Usage metering)
SCRIPT = """\
#!/bin/bash
# Sets this node up with what the parameter %(parameter)s holds.
# Ends with 0 whatever happens: one node must not end the cluster's creation. Its log and metrics tell of a failure.
set -u
set_up=${ROOT:-}/opt/cdk-training-cluster-set-up.sh
exec >>"${ROOT:-}/var/log/cdk-training-cluster.log" 2>&1
metadata=http://169.254.169.254/latest
token=$(curl -sf -X PUT -H 'X-aws-ec2-metadata-token-ttl-seconds: 300' "$metadata/api/token")
region=$(curl -sf -H "X-aws-ec2-metadata-token: $token" "$metadata/meta-data/placement/region")
for try in 1 2 3 4 5 6; do
  if aws ssm get-parameter --region "$region" --name '%(parameter)s' --query Parameter.Value --output text >"$set_up"
  then
    bash "$set_up"
    exit 0
  fi
  sleep $((try * 5))
done
echo 'cdk-training-cluster: the set-up could not be read: look at the role and the way to Systems Manager'
aws cloudwatch put-metric-data --region "$region" --namespace '%(namespace)s' --metric-data '%(metric)s'
exit 0
"""
_NAME: Final = "set_up.sh"


def make_lifecycle(
    scope: Construct,
    *,
    cluster_name: str,
    node_group: str,
    set_up: str,
    role: iam.IRole,
    orchestration: HyperPodOrchestration,
) -> dict[str, str]:
    """Make the script of a node group, and the parameter with what it runs.

    Args:
        scope: The node group's construct.
        cluster_name: The cluster's name.
        node_group: The node group's name.
        set_up: The shell script that it holds.
        role: The nodes' role, which is given what the script needs.
        orchestration: What runs jobs: nodes for Slurm are set up by HyperPod first.

    Returns:
        The group's `LifeCycleConfig`.

    Raises:
        ValueError: The script is too long for a parameter.
    """
    if len(set_up.encode()) > MAX_PARAMETER_BYTES:
        raise ValueError(
            f"environment and scripts of a node group must leave the set-up of a HyperPod node below "
            f"{MAX_PARAMETER_BYTES} bytes, got {len(set_up.encode())}: move what is long into a script"
        )
    parameter = f"/cdk-training-cluster/{cluster_name}/hyperpod/{node_group}"
    stored = ssm.StringParameter(
        scope,
        "SetUp",
        parameter_name=parameter,
        description="What a node runs when HyperPod has launched it",
        string_value=set_up,
        tier=ssm.ParameterTier.INTELLIGENT_TIERING,
    )
    # What CDK grants holds ssm:DescribeParameters too, which knows no single parameter.
    iam.Grant.add_to_principal(grantee=role, actions=["ssm:GetParameter"], resource_arns=[stored.parameter_arn])
    metric = failure_metric(cluster_name, node_group)
    values = {"parameter": parameter, "namespace": node_namespace(cluster_name), "metric": metric}
    location = _published(scope, SCRIPT % values)
    bucket = f"arn:{HERE.partition}:s3:::{location.bucket_name}"
    role.add_to_principal_policy(
        iam.PolicyStatement(actions=["s3:GetObject"], resources=[f"{bucket}/{location.object_key}"])
    )
    folder = location.object_key.removesuffix(_NAME)
    role.add_to_principal_policy(
        iam.PolicyStatement(
            actions=["s3:ListBucket"],
            resources=[bucket],
            # Whether HyperPod lists with the slash at the end is not documented.
            conditions={"StringLike": {"s3:prefix": [folder.removesuffix("/"), f"{folder}*"]}},
        )
    )
    # Nodes for Slurm are set up by HyperPod, which then runs an extension; on EKS the script is the whole set-up.
    # https://docs.aws.amazon.com/sagemaker/latest/dg/smcluster-getting-started-slurm-cli.html
    moment = "OnInitComplete" if orchestration is HyperPodOrchestration.SLURM else "OnCreate"
    return {"SourceS3Uri": f"s3://{location.bucket_name}/{folder}", moment: _NAME}


def _published(scope: Construct, text: str) -> FileAssetLocation:
    """Put a text into the app's asset bucket, alone below its prefix.

    Raises:
        ValueError: The stack was given a synthesizer. CDK binds a copy of it, and Python gets the one that was given.
    """
    digest = hashlib.sha256(text.encode()).hexdigest()
    with tempfile.TemporaryDirectory() as name:
        file = Path(name) / _NAME
        file.write_text(text, encoding="utf-8")
        staging = AssetStaging(scope, "Lifecycle", source_path=str(file))
        stack = Stack.of(scope)
        try:
            return stack.synthesizer.add_file_asset(
                source_hash=f"hyperpod-{digest}/{_NAME.removesuffix('.sh')}",
                file_name=staging.relative_staged_path(stack),
                packaging=FileAssetPackaging.FILE,
            )
        except RuntimeError as error:
            if "must be bound" not in str(error):
                raise
            raise ValueError(
                "synthesizer must be left out of a stack with HyperPod, and default_stack_synthesizer out of its "
                "app, since CDK cannot publish a file below a prefix with one that was given in Python; for another "
                "qualifier set the context @aws-cdk/core:bootstrapQualifier"
            ) from error
