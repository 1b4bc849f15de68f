"""Capacity Reservations and Capacity Blocks that the cluster file names: state, end, count, zone and type."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial
from typing import Any

from cdk_training_cluster_cli.prepare.preflight.checks import Aws, Check, Verdict, failed, found, passed, unknown
from cdk_training_cluster_cli.prepare.preflight.needs import GroupNeed, Needs
from cdk_training_cluster_cli.prepare.preflight.stacks import described_stack

# https://docs.aws.amazon.com/AWSEC2/latest/APIReference/API_CapacityReservation.html
_USABLE = frozenset({"active", "scheduled"})
_COMING = frozenset({"pending", "assessing", "delayed", "payment-pending"})
_BLOCK, _DEFAULT = "capacity-block", "default"
# EC2 ends a block's instances half an hour before its end, and the power function takes them down ten minutes before
# that: https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/ec2-capacity-blocks.html
_NO_USE = timedelta(minutes=40)


@dataclass(frozen=True, kw_only=True)
class RequiredPurchase:
    """A reservation or Capacity Block that a node group requires.

    Attributes:
        id: Its id.
        group: The node group.
        block: Whether it is to be a Capacity Block.
        zone: The cluster's zone.
        alone: Whether all the group's nodes come from it.
        placement_group: The placement group that the cluster file gives for it. None: it gives none.
        platform: The platform that it gives. None: it gives none.
    """

    id: str
    group: GroupNeed
    block: bool
    zone: str
    alone: bool
    placement_group: str | None = None
    platform: str | None = None


def judge_purchase(wanted: RequiredPurchase, now: datetime, described: Mapping[str, Any] | None) -> Verdict:
    """Say whether a reservation or block can carry a node group.

    Args:
        wanted: What the group wants of it.
        now: The time.
        described: What EC2 says of it. None: there is none.
    """
    if described is None:
        return failed(f"the account has no {wanted.id}", "correct the id, or check the region and AWS_PROFILE")
    return _mismatch(wanted, described) or _useless(wanted, now, described) or _usable(wanted, described)


def _useless(wanted: RequiredPurchase, now: datetime, described: Mapping[str, Any]) -> Verdict | None:
    state, end, total = described["State"], described.get("EndDate"), described["TotalInstanceCount"]
    if state in _COMING:
        return unknown(f"{wanted.id} is {state}", f"wait until it is scheduled or active: {_show(wanted.id)}")
    if state not in _USABLE:
        return failed(f"{wanted.id} is {state}", "name one that is scheduled or active")
    if end is not None and end - now <= (_NO_USE if wanted.block else timedelta()):
        return failed(f"{wanted.id} ends at {_utc(end)}: no node starts in it any more", "name another")
    if wanted.alone and total < wanted.group.count:
        mend = f"write count: {total}, or have more instances in {wanted.id}"
        return failed(f"{wanted.id} has {total} instances for {wanted.group.count} nodes", mend)
    return None


def _usable(wanted: RequiredPurchase, described: Mapping[str, Any]) -> Verdict:
    state, end, total = described["State"], described.get("EndDate"), described["TotalInstanceCount"]
    until = "" if end is None else f", until {_utc(end)}"
    starts = f" from {_utc(described['StartDate'])}" if state == "scheduled" and described.get("StartDate") else ""
    free = described["AvailableInstanceCount"]
    return passed(f"{wanted.id} is {state}{starts}: {total} instances, {free} of them unused{until}")


def judge_end(end: datetime, now: datetime, stack: Mapping[str, Any] | None) -> Verdict:
    """Say whether a reservation that is made can have its end.

    https://docs.aws.amazon.com/AWSEC2/latest/APIReference/API_CreateCapacityReservation.html

    Args:
        end: When it is to end.
        now: The time.
        stack: The cluster's stack as CloudFormation describes it. None: there is none.
    """
    if end > now:
        return passed(f"the reservation is made until {_utc(end)}")
    if stack is None:
        return failed(f"{_utc(end)} is past, and EC2 makes no reservation that is over", "write a later end")
    return passed(f"{_utc(end)} is past: a deployment makes no reservation, and can change all else")


def _mismatch(wanted: RequiredPurchase, described: Mapping[str, Any]) -> Verdict | None:
    kind = described.get("ReservationType", _DEFAULT)
    if wanted.block != (kind == _BLOCK):
        right = "capacity_block" if kind == _BLOCK else "from_reservation"
        return failed(f"{wanted.id} is of type {kind}", f"write it under {right}")
    if described["AvailabilityZone"] != wanted.zone:
        zone = described["AvailabilityZone"]
        return failed(f"{wanted.id} is in {zone}, not in {wanted.zone}", f"write availability_zone: {zone}")
    if described["InstanceType"] not in wanted.group.instance_types:
        name = described["InstanceType"]
        return failed(
            f"{wanted.id} is for {name}, not for {' or '.join(wanted.group.instance_types)}",
            f"write instance_types: [{name}]",
        )
    return _otherwise_made(wanted, described)


def _otherwise_made(wanted: RequiredPurchase, described: Mapping[str, Any]) -> Verdict | None:
    made_in = str(described.get("PlacementGroupArn", "")).rpartition("/")[2]
    if wanted.placement_group not in (None, made_in):
        right = f"write placement_group: {made_in}" if made_in else "leave placement_group out"
        return failed(f"{wanted.id} was not made in the placement group {wanted.placement_group}", right)
    if wanted.platform not in (None, described.get("InstancePlatform")):
        platform = described.get("InstancePlatform")
        return failed(
            f"{wanted.id} is for {platform}, not for {wanted.platform}", f"write instance_platform: {platform}"
        )
    if described.get("Tenancy", _DEFAULT) != _DEFAULT:
        return failed(f"{wanted.id} has the tenancy {described['Tenancy']}", "name one of the default tenancy")
    return None


def _show(id: str) -> str:
    return f"aws ec2 describe-capacity-reservations --capacity-reservation-ids {id}"


def _utc(time: datetime) -> str:
    return f"{time:%Y-%m-%d %H:%M} UTC"


def purchase_checks(needs: Needs, now: datetime) -> Iterator[Check]:
    """Yield a check for each reservation and block of each node group.

    Args:
        needs: What the cluster needs.
        now: The time.
    """
    for group in needs.groups:
        bought = group.capacity
        if bought.end_time is not None:
            name = f"end of the reservation of {group.name}"
            past = partial(described_stack, needs.cluster.cluster_stack_name)
            ask = past if bought.end_time <= now else lambda _: None
            yield Check(name=name, ask=ask, judge=partial(judge_end, bought.end_time, now))
        for ids, block in ((bought.reservation_ids, False), (bought.block_ids, True)):
            for each in ids:
                wanted = RequiredPurchase(
                    id=each,
                    group=group,
                    block=block,
                    zone=needs.zone,
                    alone=not bought.is_prioritized,
                    placement_group=bought.placement_group,
                    platform=bought.instance_platform,
                )
                yield Check(
                    name=f"{'Capacity Block' if block else 'Capacity Reservation'} {each}",
                    ask=partial(_described, each),
                    judge=partial(judge_purchase, wanted, now),
                )


def _described(id: str, aws: Aws) -> Mapping[str, Any] | None:
    ask = partial(aws.client("ec2").describe_capacity_reservations, CapacityReservationIds=[id])
    said = found(ask, "InvalidCapacityReservationId.NotFound", "InvalidCapacityReservationId.Malformed")
    return None if said is None else next(iter(said["CapacityReservations"]), None)
