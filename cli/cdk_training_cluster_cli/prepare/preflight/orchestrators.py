"""Checks of an orchestrator in the account: zones and deployed version of EKS, and containers of AWS Batch."""

from collections.abc import Iterator, Mapping, Sequence
from datetime import date, datetime
from functools import partial
from typing import Any

from cdk_training_cluster.orchestrators.eks.rules import REFUSED_ZONES
from cdk_training_cluster.orchestrators.eks.settings import SUPPORT_ENDS, support_problem
from cdk_training_cluster_cli.prepare.preflight.checks import Aws, Check, Verdict, failed, found, passed, unknown
from cdk_training_cluster_cli.prepare.preflight.needs import Needs
from cdk_training_cluster_cli.prepare.preflight.zones import read_subnet
from cdk_training_cluster_file.orchestrators.eks import EksSettings

_ANYWHERE = "0.0.0.0/0"


def judge_kubernetes_version(wanted: str, today: date, deployed: str | None) -> Verdict:
    """Say whether EKS takes the version of the cluster file: a supported one, one up at a time, and never down.

    https://docs.aws.amazon.com/eks/latest/userguide/update-cluster.html
    https://docs.aws.amazon.com/eks/latest/userguide/kubernetes-versions.html

    Args:
        wanted: The version of the file.
        today: The day, in UTC.
        deployed: The version of the cluster. None: there is none yet.
    """
    unsupported, newer = support_problem(wanted, today), "write a newer kubernetes_version"
    if deployed is None:
        if unsupported:
            return (failed if today >= SUPPORT_ENDS[wanted][1] else unknown)(unsupported, newer)
        return passed("there is none yet: the deployment makes it")
    major, minor = _parts(deployed)
    said = f"it has Kubernetes {deployed}, and the file says {wanted}"
    if _parts(wanted) in ((major, minor), (major, minor + 1)):
        return unknown(f"{said}: {unsupported}", newer) if unsupported else passed(said)
    if _parts(wanted) < (major, minor):
        return failed(f"{said}: EKS takes no cluster to an older version", f"write kubernetes_version: '{deployed}'")
    return failed(
        f"{said}: EKS takes one minor version at a time",
        f"write kubernetes_version: '{major}.{minor + 1}', deploy, and go on from there",
    )


def judge_eks_zones(nodes: str, second: str | None, zones: Sequence[Mapping[str, Any]]) -> Verdict:
    """Say whether EKS takes subnets in the zones of a cluster: some it refuses, and their names differ by account.

    https://docs.aws.amazon.com/eks/latest/userguide/network-reqs.html#cluster-subnets

    Args:
        nodes: The nodes' zone.
        second: The zone of the control plane's other subnet. None: an existing subnet is named.
        zones: What EC2 says of the region's Availability Zones.
    """
    known = {str(each["ZoneName"]): each for each in zones}
    fit = [
        name
        for name, zone in sorted(known.items())
        if zone["State"] == "available" and zone["ZoneId"] not in REFUSED_ZONES and name not in (nodes, second)
    ]
    for setting, name in (("availability_zone", nodes), ("eks.control_plane_zone", second)):
        zone, mend = known.get(name or ""), f"write {setting}: {' or '.join(fit)}"
        if zone is not None and zone["ZoneId"] in REFUSED_ZONES:
            return failed(
                f"{name} is {zone['ZoneId']} in this account, where EKS takes no subnets of a cluster", mend
            )
        if zone is None and name == second is not None:
            return failed(f"the account has no Availability Zone {name} in the region", mend)
        if zone is not None and zone["State"] != "available":
            return unknown(f"{name} is {zone['State']}", "wait, or look at the AWS Health Dashboard")
    ids = " and ".join(f"{name} ({known[name]['ZoneId']})" for name in (nodes, second) if name in known)
    return passed(f"EKS takes subnets in {ids}" if ids else "EKS's zones are those of existing subnets")


def judge_control_plane_subnet(vpc: str | None, nodes: str, subnet: Mapping[str, Any] | None) -> Verdict:
    """Say whether EKS's control plane can use an existing subnet beside the nodes'.

    https://docs.aws.amazon.com/eks/latest/userguide/network-reqs.html#cluster-subnets

    Args:
        vpc: The cluster's VPC. None: it is made.
        nodes: The nodes' zone.
        subnet: What EC2 says of the subnet. None: there is none.
    """
    mend = "correct eks.control_plane_subnet_id"
    if subnet is None:
        return failed("there is no such subnet", f"{mend}, or check AWS_PROFILE")
    zone, zone_id = subnet["AvailabilityZone"], subnet["AvailabilityZoneId"]
    if subnet["VpcId"] != vpc:
        return failed(f"it is in {subnet['VpcId']}, not in {vpc or 'the VPC that is made'}", mend)
    if zone == nodes:
        return failed(f"it is in {zone} like the nodes, and EKS demands two zones", mend)
    if zone_id in REFUSED_ZONES:
        return failed(f"it is in {zone}, {zone_id} in this account, where EKS takes no subnets of a cluster", mend)
    return passed(f"it is in {zone} ({zone_id})")


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


def orchestrator_checks(needs: Needs, now: datetime) -> Iterator[Check]:
    """Yield the checks of the orchestrator.

    Args:
        needs: What the cluster needs.
        now: The time.
    """
    cluster, eks, network = needs.cluster, needs.cluster.orchestrator.settings, needs.cluster.network
    if isinstance(eks, EksSettings):
        yield Check(
            name="zones of the EKS cluster",
            ask=_zones,
            judge=partial(judge_eks_zones, needs.zone, eks.control_plane_zone),
        )
        if eks.control_plane_subnet_id is not None:
            yield Check(
                name=f"subnet {eks.control_plane_subnet_id}",
                ask=partial(read_subnet, eks.control_plane_subnet_id),
                judge=partial(judge_control_plane_subnet, None if network is None else network.vpc_id, needs.zone),
            )
        yield Check(
            name=f"EKS cluster {cluster.name}",
            ask=partial(_kubernetes_version, cluster.name),
            judge=partial(judge_kubernetes_version, eks.kubernetes_version, now.date()),
        )
    if cluster.orchestrator.batch is not None and network is not None:
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


def _zones(aws: Aws) -> Sequence[Mapping[str, Any]]:
    # https://docs.aws.amazon.com/AWSEC2/latest/APIReference/API_DescribeAvailabilityZones.html
    filters = [{"Name": "zone-type", "Values": ["availability-zone"]}]
    zones: Sequence[Mapping[str, Any]] = aws.client("ec2").describe_availability_zones(Filters=filters)[
        "AvailabilityZones"
    ]
    return zones


def _kubernetes_version(name: str, aws: Aws) -> str | None:
    # https://docs.aws.amazon.com/eks/latest/APIReference/API_DescribeCluster.html
    said = found(partial(aws.client("eks").describe_cluster, name=name), "ResourceNotFoundException")
    return None if said is None else str(said["cluster"]["version"])


def _default_group(vpc: str, aws: Aws) -> Mapping[str, Any] | None:
    # https://docs.aws.amazon.com/AWSEC2/latest/APIReference/API_DescribeSecurityGroups.html
    filters = [{"Name": "vpc-id", "Values": [vpc]}, {"Name": "group-name", "Values": ["default"]}]
    return next(iter(aws.client("ec2").describe_security_groups(Filters=filters)["SecurityGroups"]), None)
