"""Pod Identity of the local AWS: EKS keeps which role the pods of a service account have, and what it refuses."""

from typing import Any

import pytest
from botocore.exceptions import ClientError

from eks_pods_template import pod_role, pods_template
from local_aws import LocalAws
from local_aws_scene import Stacks


def _kept(aws: LocalAws) -> list[dict[str, str]]:
    eks = aws.client("eks")
    listed = eks.list_pod_identity_associations(clusterName="pod")["associations"]
    return [
        eks.describe_pod_identity_association(clusterName="pod", associationId=each["associationId"])["association"]
        for each in listed
    ]


def test_an_association_is_kept_gets_another_role_and_goes_with_its_stack(aws: LocalAws, stacks: Stacks) -> None:
    template = pods_template()
    stack = stacks.create(template)
    assert stacks.status(stack) == "CREATE_COMPLETE", stacks.reasons(stack)
    (first,) = _kept(aws)
    assert (first["namespace"], first["serviceAccount"]) == ("training", "cluster-job")
    assert stacks.physical_ids(stack)["Jobs"] in first["roleArn"]
    # Neither the service account nor the agent has to be there.
    assert aws.client("eks").list_addons(clusterName="pod")["addons"] == ["vpc-cni"]
    template["Resources"]["Pods"]["Properties"]["RoleArn"] = {"Fn::GetAtt": ["Others", "Arn"]}
    stacks.update(stack, template)
    (second,) = _kept(aws)
    assert second["associationId"] == first["associationId"]
    assert stacks.physical_ids(stack)["Others"] in second["roleArn"]
    template["Resources"]["Pods"]["Properties"]["Namespace"] = "research"
    stacks.update(stack, template)
    (third,) = _kept(aws)
    assert third["associationId"] != second["associationId"]
    assert third["namespace"] == "research"
    del template["Resources"]["Pods"]
    stacks.update(stack, template)
    assert _kept(aws) == []


@pytest.mark.parametrize(
    ("changes", "role", "refusal"),
    [
        ({"Namespace": "Training"}, pod_role(), "namespace Training is not a valid Kubernetes name"),
        ({"Namespace": "n" * 64}, pod_role(), f"namespace {'n' * 64} is not a valid Kubernetes name"),
        ({"ServiceAccount": "cluster_job"}, pod_role(), "serviceAccount cluster_job is not a valid Kubernetes name"),
        ({}, pod_role("ec2.amazonaws.com"), "must trust pods.eks.amazonaws.com with sts:AssumeRole"),
        ({}, pod_role(actions="sts:AssumeRole"), "must trust pods.eks.amazonaws.com with sts:TagSession"),
        ({}, pod_role(account="other"), "must trust pods.eks.amazonaws.com with sts:AssumeRole for cluster-job"),
        ({"RoleArn": "arn:aws:iam::123456789012:role/none"}, pod_role(), "could not be assumed"),
        ({"RoleArn": "arn:aws:iam::123456789012:user/me"}, pod_role(), "must trust pods.eks.amazonaws.com"),
        ({"ClusterName": "none"}, pod_role(), "No cluster found for name: none"),
    ],
)
def test_an_association_that_gives_pods_nothing_is_refused(
    changes: dict[str, Any], role: dict[str, Any], refusal: str, stacks: Stacks
) -> None:
    template = pods_template(**changes)
    template["Resources"]["Jobs"] = role
    stack = stacks.create(template)
    assert stacks.status(stack) == "ROLLBACK_COMPLETE"
    assert refusal in " ".join(stacks.reasons(stack).values())


def test_a_service_account_has_onepod_role(aws: LocalAws, stacks: Stacks) -> None:
    stacks.create(pods_template())
    (kept,) = _kept(aws)
    names = {name: kept[name] for name in ("clusterName", "namespace", "serviceAccount", "roleArn")}
    with pytest.raises(ClientError, match=f"Association already exists: {kept['associationId']}"):
        aws.client("eks").create_pod_identity_association(**names)
