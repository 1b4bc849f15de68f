"""What engines find in the account: a deployed EKS cluster's version, and where containers of Batch's jobs are."""

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Any

from cdk_training_cluster.orchestrators.kinds import OrchestratorKind
from cdk_training_cluster_stacks.cluster_file.orchestrators.eks import EksSettings
from cdk_training_cluster_stacks.preflight.checks import Aws, Check, Verdict, failed, found, passed, unknown
from cdk_training_cluster_stacks.preflight.needs import Needs

_ANYWHERE = "0.0.0.0/0"


def judge_kubernetes_version(wanted: str, deployed: str | None) -> Verdict:
    """Say whether EKS takes the version of the cluster file: one minor version up at a time, and never down.

    https://docs.aws.amazon.com/eks/latest/userguide/update-cluster.html

    Args:
        wanted: The version of the file.
        deployed: The version of the cluster. None: there is none yet.
    """
    if deployed is None:
        return passed("there is none yet: the deployment makes it")
    major, minor = _parts(deployed)
    said = f"it has Kubernetes {deployed}, and the file says {wanted}"
    if _parts(wanted) in ((major, minor), (major, minor + 1)):
        return passed(said)
    if _parts(wanted) < (major, minor):
        return failed(f"{said}: EKS takes no cluster to an older version", f"write kubernetes_version: '{deployed}'")
    return failed(
        f"{said}: EKS takes one minor version at a time",
        f"write kubernetes_version: '{major}.{minor + 1}', deploy, and go on from there",
    )


def judge_default_group(vpc: str, region: str, group: Mapping[str, Any] | None) -> Verdict:
    """Say whether the containers of a multi-node job on AWS Batch reach each other in a VPC.

    https://docs.aws.amazon.com/batch/latest/userguide/mnp-ce.html

    Args:
        vpc: The VPC.
        region: The region.
        group: What EC2 says of its default security group. None: it says nothing.
    """
    if group is None:
        return unknown(f"EC2 shows no default security group of {vpc}", "check network.vpc_id and AWS_PROFILE")
    identity, closed = group["GroupId"], []
    mend = f"aws ec2 authorize-security-group-{{}} --region {region} --group-id {identity} --ip-permissions {{}}"
    itself, anywhere = f"UserIdGroupPairs=[{{GroupId={identity}}}]", f"IpRanges=[{{CidrIp={_ANYWHERE}}}]"
    if not _lets(group["IpPermissions"], identity, _ANYWHERE):
        closed.append(("in from itself", mend.format("ingress", f"IpProtocol=-1,{itself}")))
    if not _lets(group["IpPermissionsEgress"], _ANYWHERE):
        closed.append(("out", mend.format("egress", f"IpProtocol=-1,{anywhere}")))
    if closed:
        said = f"{identity}, where the containers of multi-node jobs are, does not let all traffic"
        return failed(f"{said} {' or '.join(way for way, _ in closed)}", "; ".join(each for _, each in closed))
    return passed(f"{identity} lets containers of multi-node jobs reach each other, and out")


def engine_checks(needs: Needs) -> Iterator[Check]:
    """Yield the checks of the engine.

    Args:
        needs: What the cluster needs.
    """
    cluster, eks, network = needs.cluster, needs.cluster.orchestrator.engine, needs.cluster.network
    if isinstance(eks, EksSettings):
        yield Check(
            name=f"EKS cluster {cluster.name}",
            ask=partial(_kubernetes_version, cluster.name),
            judge=partial(judge_kubernetes_version, eks.kubernetes_version),
        )
    if needs.orchestrator is OrchestratorKind.BATCH and network is not None:
        yield Check(
            name=f"default security group of {network.vpc_id}",
            ask=partial(_default_group, network.vpc_id),
            judge=partial(judge_default_group, network.vpc_id, needs.region),
        )


def _parts(version: str) -> tuple[int, int]:
    major, _, minor = version.partition(".")
    return int(major), int(minor)


def _lets(rules: Sequence[Mapping[str, Any]], *peers: str) -> bool:
    """Say whether a rule for all traffic names one of some security groups and ranges."""
    return any(
        rule["IpProtocol"] == "-1"
        and (
            any(pair.get("GroupId") in peers for pair in rule.get("UserIdGroupPairs", ()))
            or any(each.get("CidrIp") in peers for each in rule.get("IpRanges", ()))
        )
        for rule in rules
    )


def _kubernetes_version(name: str, aws: Aws) -> str | None:
    # https://docs.aws.amazon.com/eks/latest/APIReference/API_DescribeCluster.html
    said = found(partial(aws.client("eks").describe_cluster, name=name), "ResourceNotFoundException")
    return None if said is None else str(said["cluster"]["version"])


def _default_group(vpc: str, aws: Aws) -> Mapping[str, Any] | None:
    # https://docs.aws.amazon.com/AWSEC2/latest/APIReference/API_DescribeSecurityGroups.html
    filters = [{"Name": "vpc-id", "Values": [vpc]}, {"Name": "group-name", "Values": ["default"]}]
    return next(iter(aws.client("ec2").describe_security_groups(Filters=filters)["SecurityGroups"]), None)
