"""The rules by which EC2 refuses a launch for the capacity that it asks for: pure functions, each over one launch.

Codes and messages are as `launch_rules` says. EC2 has one answer to every launch that a targeted reservation
does not fit; the local AWS adds in what it does not.
"""

import re
from collections.abc import Callable

from local_aws.launch_facts import Ec2Refusal, Launch, ReservationFacts

_BLOCK = "capacity-block"
_ID = re.compile(r"cr-[0-9a-f]{8}(?:[0-9a-f]{9})?")


def spot_in_a_placement_group_terminates(launch: Launch) -> None:
    """Refuse Spot in a placement group if an interruption shall stop or hibernate the instance.

    https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/placement-groups.html
    """
    options = (launch.data.get("InstanceMarketOptions") or {}).get("SpotOptions") or {}
    behaviour = options.get("InstanceInterruptionBehavior", "terminate")
    if launch.market == "spot" and launch.placement.get("GroupName") and behaviour != "terminate":
        raise Ec2Refusal(
            "InvalidParameterCombination",
            f"Spot Instances that {behaviour} on interruption cannot be launched in a placement group.",
        )


def a_target_is_one_thing(launch: Launch) -> None:
    """Refuse two targets, and a target beside a preference that has none.

    Seen in the field: https://github.com/gardener/machine-controller-manager-provider-aws/issues/114.
    https://docs.aws.amazon.com/AWSEC2/latest/APIReference/API_CapacityReservationSpecification.html
    """
    if len(launch.target) > 1:
        raise Ec2Refusal(
            "InvalidParameterCombination",
            "The request can include either a CapacityReservationId or a CapacityReservationResourceGroupArn but "
            "not both.",
        )
    if launch.target and launch.preference not in {None, "capacity-reservations-only"}:
        raise Ec2Refusal(
            "InvalidParameterCombination",
            "The request can include either a CapacityReservationId or a CapacityReservationPreference but not both.",
        )


def the_reservation_exists(launch: Launch) -> None:
    """Refuse a reservation, or a group of them, that is not there.

    https://docs.aws.amazon.com/AWSEC2/latest/APIReference/errors-overview.html
    """
    arn, named = launch.target.get("CapacityReservationResourceGroupArn"), launch.target_id
    if named and named not in launch.context.reservations:
        raise unknown_reservation(named)
    if arn and arn not in launch.context.reservation_groups:
        raise Ec2Refusal(
            "InvalidParameterValue",
            f"The Capacity Reservation Resource Group '{arn}' does not exist, or is not of the type "
            "AWS::EC2::CapacityReservationPool.",
        )


def is_reservation_id(text: str) -> bool:
    """Tell whether a text has the form of a Capacity Reservation's id."""
    return _ID.fullmatch(text) is not None


def unknown_reservation(reservation_id: str) -> Ec2Refusal:
    """Return EC2's answer to the id of a reservation that is not there."""
    if not is_reservation_id(reservation_id):
        return Ec2Refusal(
            "InvalidCapacityReservationId.Malformed",
            f"The ID for the Capacity Reservation is malformed: '{reservation_id}' (expecting \"cr-...\")",
        )
    return Ec2Refusal(
        "InvalidCapacityReservationId.NotFound",
        f"The specified Capacity Reservation ID '{reservation_id}' does not exist.",
    )


def the_block_market_has_a_target(launch: Launch) -> None:
    """Refuse the market of Capacity Blocks if no block is targeted.

    https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/capacity-blocks-launch.html
    """
    if launch.market == _BLOCK and not launch.target:
        raise Ec2Refusal(
            "InvalidParameterCombination",
            "The market type capacity-block needs a CapacityReservationTarget. Specify a Capacity Block, and try "
            "again.",
        )


def a_reservation_is_used_on_its_market(launch: Launch) -> None:
    """Refuse a Capacity Block without its market type, and any but On-Demand with another reservation.

    Seen in the field: https://github.com/terraform-aws-modules/terraform-aws-ec2-instance/pull/404.
    https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/capacity-blocks-launch.html
    """
    reservation, market = launch.reservation, launch.market or "on-demand"
    if reservation and market != (_BLOCK if reservation.is_block else "on-demand"):
        raise Ec2Refusal(
            "InvalidParameterValue",
            "The market type (purchasing) option is not valid. Choose a different market type and try again.",
        )


def a_block_is_in_no_placement_group(launch: Launch) -> None:
    """Refuse a placement group for a launch into a Capacity Block.

    https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/cr-groups-launch.html
    """
    if launch.market == _BLOCK and launch.placement.get("GroupName"):
        raise Ec2Refusal(
            "InvalidParameterCombination",
            "Capacity Blocks do not support placement groups. You can't specify a placement group when your request "
            "targets Capacity Blocks.",
        )


def the_block_has_begun(launch: Launch) -> None:
    """Refuse a launch into a Capacity Block before its start.

    https://docs.aws.amazon.com/autoscaling/ec2/userguide/ts-as-instancelaunchfailure.html
    """
    reservation = _at_launch(launch)
    if reservation and reservation.state == "scheduled":
        raise Ec2Refusal(
            "InvalidCapacityReservationState.PendingActivation",
            f"Your Capacity Block reservation {reservation.reservation_id} is not active yet.",
        )


def the_reservation_has_not_ended(launch: Launch) -> None:
    """Refuse a launch into a reservation that has ended, or a block that AWS is clearing before its end.

    https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/capacity-blocks-how.html
    """
    reservation = _at_launch(launch)
    if reservation and reservation.state not in {"active", "scheduled"}:
        raise exceeded(f"The Capacity Reservation {reservation.reservation_id} is {reservation.state}.")
    if reservation and reservation.is_ending:
        raise exceeded(f"The Capacity Block {reservation.reservation_id} is about to end.")


def the_reservation_fits(launch: Launch) -> None:
    """Refuse a reservation that differs from the launch in what has to match.

    Seen in the field: https://github.com/hashicorp/terraform-provider-aws/issues/32458.
    https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/capacity-reservations-launch.html
    """
    reservation = _at_launch(launch)
    misfit = reservation and misfit_of(launch, reservation)
    if misfit:
        raise exceeded(misfit)


def the_reservation_has_room(launch: Launch) -> None:
    """Refuse a reservation that is used up.

    https://docs.aws.amazon.com/AWSEC2/latest/APIReference/errors-overview.html
    """
    reservation = _at_launch(launch)
    if reservation and reservation.available < 1:
        raise exceeded(f"The Capacity Reservation {reservation.reservation_id} has no instance left.")


RULES: tuple[Callable[[Launch], None], ...] = (
    spot_in_a_placement_group_terminates,
    a_target_is_one_thing,
    the_reservation_exists,
    the_block_market_has_a_target,
    a_reservation_is_used_on_its_market,
    a_block_is_in_no_placement_group,
    the_block_has_begun,
    the_reservation_has_not_ended,
    the_reservation_fits,
    the_reservation_has_room,
)


def same_type(launch: Launch, reservation: ReservationFacts) -> bool:
    """Tell whether a reservation is for the type."""
    return reservation.instance_type == launch.instance_type


def same_zone(launch: Launch, reservation: ReservationFacts) -> bool:
    """Tell whether a reservation is in the subnet's zone."""
    return reservation.availability_zone == launch.context.availability_zone


def same_platform(launch: Launch, reservation: ReservationFacts) -> bool:
    """Tell whether a reservation is for the image's platform."""
    image = str(launch.data.get("ImageId"))
    return reservation.platform == launch.context.image_platforms.get(image, "Linux/UNIX")


def same_tenancy(launch: Launch, reservation: ReservationFacts) -> bool:
    """Tell whether a reservation is of the tenancy."""
    return bool(reservation.tenancy == launch.placement.get("Tenancy", "default"))


def same_placement_group(launch: Launch, reservation: ReservationFacts) -> bool:
    """Tell whether a reservation and the launch name one placement group, or one of them names none.

    A reservation made outside of a placement group can be used in it, as far as its capacity happens to lie there.
    https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/cr-cpg.html
    """
    named = launch.placement.get("GroupName")
    return not named or reservation.placement_group in {None, named}


# What has to match, and how a refusal names it.
FITS: tuple[tuple[Callable[[Launch, ReservationFacts], bool], str], ...] = (
    (same_type, "instance type"),
    (same_zone, "Availability Zone"),
    (same_platform, "platform"),
    (same_tenancy, "tenancy"),
    (same_placement_group, "placement group"),
)


def misfit_of(launch: Launch, reservation: ReservationFacts) -> str | None:
    """Say in what a reservation does not fit a launch; None if it does."""
    wrong = [word for fits, word in FITS if not fits(launch, reservation)]
    if not wrong:
        return None
    return f"The Capacity Reservation {reservation.reservation_id} has another {' and another '.join(wrong)}."


def exceeded(detail: str) -> Ec2Refusal:
    """Return EC2's answer when a targeted reservation cannot take a launch.

    EC2 does not say why; the local AWS adds `detail`.
    """
    return Ec2Refusal(
        "ReservationCapacityExceeded",
        "The requested reservation does not have sufficient compatible and available capacity for this request. "
        + detail,
    )


def _at_launch(launch: Launch) -> ReservationFacts | None:
    """Return the targeted reservation, unless the launch is only tried out: what it lacks now it may have then."""
    return None if launch.context.is_trial else launch.reservation
