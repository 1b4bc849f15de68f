"""Where the cluster is to be: its zone, what the zone offers, an existing subnet, and Spot placement scores."""

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Any

from cdk_training_cluster.orchestrators.eks.add_ons import MIN_POD_ADDRESSES
from cdk_training_cluster_cli.money.prices.spot_market import PlacementScore, placement_scores
from cdk_training_cluster_cli.prepare.preflight.checks import Aws, Check, Verdict, failed, found, passed, unknown
from cdk_training_cluster_cli.prepare.preflight.needs import GroupNeed, Needs
from cdk_training_cluster_file.model import NetworkSettings
from cdk_training_cluster_file.orchestrators.eks import EksSettings

# 10 means that a request is highly likely to succeed, 1 that it is not, and no score is a promise:
# https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/how-sps-works.html
LIKELY_SCORE = 5


def judge_zone(zone: str, zone_id: str | None, answer: Mapping[str, Any] | None) -> Verdict:
    """Say whether a zone can be used.

    Args:
        zone: Its name.
        zone_id: The id that the cluster file gives for it. None: it gives none.
        answer: What EC2 says of it. None: the account has no such zone.
    """
    if answer is None:
        return failed(
            f"the account has no zone {zone}",
            "correct availability_zone: aws ec2 describe-availability-zones --query AvailabilityZones[].ZoneName",
        )
    if answer.get("OptInStatus") == "not-opted-in":
        group = answer["GroupName"]
        mend = f"aws ec2 modify-availability-zone-group --group-name {group} --opt-in-status opted-in"
        return failed(f"the account has not opted in to {group}", mend)
    if zone_id not in (None, answer["ZoneId"]):
        return failed(
            f"{zone} is {answer['ZoneId']} in this account, and checkpoints.express.zone_id is {zone_id}",
            f"write zone_id: {answer['ZoneId']}",
        )
    if answer["State"] != "available":
        return unknown(f"{zone} is {answer['State']}", "wait, or look at the AWS Health Dashboard")
    return passed(f"{zone} is {answer['ZoneId']} in this account, and available")


def judge_offering(instance_type: str, zone: str, zones: Sequence[str]) -> Verdict:
    """Say whether a zone offers an instance type, which is no promise of capacity.

    Args:
        instance_type: The type.
        zone: The zone.
        zones: The zones of the region that offer it.
    """
    if zone in zones:
        return passed(f"{zone} offers {instance_type}")
    if not zones:
        return failed(f"no zone of the region offers {instance_type}", "choose another region or type")
    return failed(
        f"{zone} does not offer {instance_type}; {', '.join(sorted(zones))} {'do' if len(zones) > 1 else 'does'}",
        f"write availability_zone: {min(zones)}",
    )


def judge_subnet(network: NetworkSettings, zone: str, addresses: int, subnet: Mapping[str, Any] | None) -> Verdict:
    """Say whether an existing subnet takes the nodes.

    Args:
        network: What the cluster file says of it.
        zone: The cluster's zone.
        addresses: How many addresses its nodes take.
        subnet: What EC2 says of it. None: there is none.
    """
    if subnet is None:
        return failed(f"there is no subnet {network.subnet_id}", "correct network.subnet_id, or check AWS_PROFILE")
    if subnet["VpcId"] != network.vpc_id:
        return failed(
            f"{network.subnet_id} is in {subnet['VpcId']}, not in {network.vpc_id}",
            f"write vpc_id: {subnet['VpcId']}",
        )
    if subnet["AvailabilityZone"] != zone:
        return failed(
            f"{network.subnet_id} is in {subnet['AvailabilityZone']}, not in {zone}",
            f"write availability_zone: {subnet['AvailabilityZone']}, or name a subnet of {zone}",
        )
    free = subnet["AvailableIpAddressCount"]
    if free < addresses:
        return failed(
            f"{network.subnet_id} has {free:,} free addresses, and nodes take {addresses:,}", "name a larger subnet"
        )
    return passed(f"{network.subnet_id} is in {zone} and has {free:,} free addresses; nodes take {addresses:,}")


def judge_spot(zone: str, answer: tuple[str | None, Sequence[PlacementScore]]) -> Verdict:
    """Say how likely Spot Instances can be had, which EC2 never promises.

    Args:
        zone: The zone.
        answer: The zone's id, if it is known, and the scores of the region's zones.
    """
    zone_id, scores = answer
    by_zone = {each.zone_id: each.score for each in scores}
    score = by_zone.get(zone_id or "")
    mend = "name more instance types, or expect that nodes come late"
    if score is None:
        return unknown(f"EC2 gives no Spot placement score for {zone}", mend)
    if score >= LIKELY_SCORE:
        return passed(f"EC2 scores the Spot capacity in {zone} {score} of 10")
    best = max(by_zone, key=lambda each: by_zone[each])
    better = f"; {best} has {by_zone[best]}" if by_zone[best] > score else ""
    return unknown(f"EC2 scores the Spot capacity in {zone} {score} of 10{better}", mend)


def zone_checks(needs: Needs) -> Iterator[Check]:
    """Yield the checks of the zone, its offerings, an existing subnet, and Spot placement scores.

    Args:
        needs: What the cluster needs.
    """
    zone, checkpoints, network = needs.zone, needs.cluster.checkpoints, needs.cluster.network
    express = None if checkpoints is None else checkpoints.express
    yield Check(
        name=f"zone {zone}",
        ask=partial(_zone, zone),
        judge=partial(judge_zone, zone, None if express is None else express.zone_id),
    )
    for name in needs.instance_types:
        yield Check(
            name=f"offering of {name}", ask=partial(zones_with, name), judge=partial(judge_offering, name, zone)
        )
    if network is not None:
        yield Check(
            name=f"subnet {network.subnet_id}",
            ask=partial(read_subnet, network.subnet_id),
            judge=partial(judge_subnet, network, zone, node_addresses(needs)),
        )
    for group in needs.groups:
        if group.capacity.uses_spot:
            yield Check(
                name=f"Spot capacity of {group.name}",
                ask=partial(_scores, zone, group),
                judge=partial(judge_spot, zone),
            )


def node_addresses(needs: Needs) -> int:
    """Return how many addresses of their subnet the nodes take: one each, and on EKS those of pods beside it.

    Args:
        needs: What the cluster needs.
    """
    nodes = sum(group.count for group in needs.groups)
    eks = needs.cluster.orchestrator.settings
    if not isinstance(eks, EksSettings):
        return nodes
    return (nodes + eks.system_nodes.count) * (1 + MIN_POD_ADDRESSES)


def zones_with(instance_type: str, aws: Aws) -> list[str]:
    """Return the zones of the region that offer an instance type.

    https://docs.aws.amazon.com/AWSEC2/latest/APIReference/API_DescribeInstanceTypeOfferings.html

    Args:
        instance_type: The type.
        aws: AWS.
    """
    pages = aws.client("ec2").get_paginator("describe_instance_type_offerings")
    filters = [{"Name": "instance-type", "Values": [instance_type]}]
    offered = pages.paginate(LocationType="availability-zone", Filters=filters).search("InstanceTypeOfferings[]")
    return [str(each["Location"]) for each in offered]


def _zone(name: str, aws: Aws) -> Mapping[str, Any] | None:
    # https://docs.aws.amazon.com/AWSEC2/latest/APIReference/API_DescribeAvailabilityZones.html
    filters = [{"Name": "zone-name", "Values": [name]}]
    zones = aws.client("ec2").describe_availability_zones(AllAvailabilityZones=True, Filters=filters)
    return next(iter(zones["AvailabilityZones"]), None)


def read_subnet(subnet_id: str, aws: Aws) -> Mapping[str, Any] | None:
    """Return what EC2 says of a subnet. None: there is none.

    Args:
        subnet_id: The subnet.
        aws: AWS.
    """
    ask = partial(aws.client("ec2").describe_subnets, SubnetIds=[subnet_id])
    said = found(ask, "InvalidSubnetID.NotFound")
    return None if said is None else said["Subnets"][0]


def _scores(zone: str, group: GroupNeed, aws: Aws) -> tuple[str | None, Sequence[PlacementScore]]:
    described = _zone(zone, aws)
    scores = placement_scores(aws.client("ec2"), [aws.region], group.instance_types, group.count)
    return None if described is None else described["ZoneId"], scores
