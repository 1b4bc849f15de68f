"""The deployed power function sets the sizes of HyperPod's instance groups on EKS, with EKS's permissions alone."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from cluster_plans import EKS, ClusterPlan
from deployed_cluster import Deployed, prepare
from local_aws import LocalAws
from local_aws.functions import FunctionFailedError

_TYPE, _COUNT = "p5.48xlarge", 3
_WORKERS = {"name": "workers", "instance_types": [_TYPE], "count": _COUNT, "call": "on_demand"}


@pytest.fixture(scope="module")
def aws(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalAws]:
    with LocalAws(tmp_path_factory.mktemp("aws") / "log.txt") as running:
        prepare(running, [_TYPE])
        yield running


def _size(aws: LocalAws) -> int:
    (group,) = aws.client("sagemaker").describe_cluster(ClusterName="pod")["InstanceGroups"]
    return int(group["TargetCount"])


def _policies(aws: LocalAws) -> Iterator[tuple[str, str, dict[str, Any]]]:
    iam = aws.client("iam")
    for role in (each["RoleName"] for each in iam.list_roles()["Roles"] if "PowerFunctionRole" in each["RoleName"]):
        for policy in iam.list_role_policies(RoleName=role)["PolicyNames"]:
            yield role, policy, iam.get_role_policy(RoleName=role, PolicyName=policy)["PolicyDocument"]


def test_sizes_are_set_with_the_permissions_of_eks_and_not_without(aws: LocalAws, tmp_path: Path) -> None:
    cluster = Deployed(aws, tmp_path, "pod")
    cluster.deploy(ClusterPlan(groups=(_WORKERS,), existing_network=True, orchestrator="hyperpod_eks"))
    assert cluster.failures == []
    cluster.say("tick")
    cluster.say("stop", reason="the test")
    assert _size(aws) == 0
    cluster.say("start")
    assert _size(aws) == _COUNT

    for role, policy, document in _policies(aws):
        statements = document["Statement"]
        of_eks = [each for each in statements if "eks:" in str(each["Action"])]
        assert {each["Resource"] for each in of_eks} == {
            EKS,
            f"{EKS.replace(':cluster/', ':access-entry/')}/*",
        }
        less = {**document, "Statement": [each for each in statements if each not in of_eks]}
        aws.client("iam").put_role_policy(RoleName=role, PolicyName=policy, PolicyDocument=json.dumps(less))
    with pytest.raises(FunctionFailedError, match="not authorized to perform: eks:DescribeCluster"):
        cluster.say("stop", reason="the test")
    assert _size(aws) == _COUNT
