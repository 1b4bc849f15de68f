"""A small legal template with an EKS cluster whose pods have a role."""

from typing import Any

from eks_template import eks_template
from local_aws_scene import Template

_ACTIONS = ["sts:AssumeRole", "sts:TagSession"]


def pod_role(
    service: str = "pods.eks.amazonaws.com", actions: Any = _ACTIONS, account: str = "cluster-job"
) -> dict[str, Any]:
    """Return a role for pods.

    Args:
        service: The service that it trusts.
        actions: What it lets the service do.
        account: The service account of the pods.
    """
    tags = {
        "aws:RequestTag/eks-cluster-arn": "arn:aws:eks:us-east-1:123456789012:cluster/pod",
        "aws:RequestTag/kubernetes-service-account": account,
    }
    condition = {"StringEquals": tags}
    trusted = {"Effect": "Allow", "Action": actions, "Principal": {"Service": service}, "Condition": condition}
    return {"Type": "AWS::IAM::Role", "Properties": {"AssumeRolePolicyDocument": {"Statement": [trusted]}}}


def pods_template(**changes: Any) -> Template:
    """Return a template in which the pods of a service account have a role.

    Args:
        changes: Other properties of the association.
    """
    template = eks_template()
    resources = template["Resources"]
    for gone in ("Nodes", "Launch", "Placement"):
        del resources[gone]
    resources["Jobs"], resources["Others"] = pod_role(), pod_role()
    resources["Pods"] = {
        "Type": "AWS::EKS::PodIdentityAssociation",
        "Properties": {
            "ClusterName": {"Ref": "Cluster"},
            "Namespace": "training",
            "ServiceAccount": "cluster-job",
            "RoleArn": {"Fn::GetAtt": ["Jobs", "Arn"]},
            **changes,
        },
    }
    return template
