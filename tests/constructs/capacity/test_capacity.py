"""The ways to buy: what each refuses by itself, in exact words, and what it makes of its settings."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta, timezone, tzinfo
from math import isfinite
from typing import Any

import pytest
from aws_cdk import CfnParameter, Token

from cdk_training_cluster import UNTIL_CANCELLED, Capacity, OnIdle, UntilCancelled
from cdk_training_cluster.capacity.limits import LINUX_PLATFORMS
from synthesis import new_stack

Call = Callable[..., Capacity]

_ID, _OTHER = "cr-0a1b2c3d4e5f67890", "cr-0123456789abcdef0"
_ARN = f"arn:aws:ec2:us-east-1:111122223333:capacity-reservation/{_ID}"
_PLATFORMS = f"{', '.join(LINUX_PLATFORMS[:-1])} or {LINUX_PLATFORMS[-1]}"
_END = datetime(2026, 12, 24, 18, tzinfo=UTC)


def _refusal(call: Call, *arguments: Any, **settings: Any) -> str:
    with pytest.raises(ValueError) as refused:  # noqa: PT011  # the whole text is compared
        call(*arguments, **settings)
    return str(refused.value)


_WRONG_IDS = [
    "",
    "cr-",
    "cr-0a1b2c3d4e5f6789",
    "cr-0a1b2c3d4e5f678901",
    "cr-0A1B2C3D4E5F67890",
    "cr-0a1b2c3g",
    " cr-0a1b2c3d",
    "crb-0a1b2c3d4e5f67890",
    "lt-0a1b2c3d4e5f67890",
    None,
    7,
]


@pytest.mark.parametrize("call", [Capacity.from_reservation, Capacity.capacity_block])
@pytest.mark.parametrize("wrong", [*_WRONG_IDS, _ARN])
def test_what_is_no_id_is_refused(call: Call, wrong: Any) -> None:
    assert _refusal(call, wrong) == (
        "capacity_reservation_id must be the id of a capacity reservation, such as 'cr-0a1b2c3d4e5f67890', got "
        f"{wrong!r}"
    )


@pytest.mark.parametrize("call", [Capacity.from_reservation, Capacity.capacity_block])
@pytest.mark.parametrize("right", ["cr-0a1b2c3d", _ID])
def test_both_lengths_of_ids_are_taken(call: Call, right: str) -> None:
    made = call(right)
    assert made.capacity_reservation_id == right


@pytest.mark.parametrize("setting", ["reservations", "capacity_blocks"])
@pytest.mark.parametrize(
    "wrong",
    [
        *_WRONG_IDS,
        f"arn:aws:ec2:us-east-1:1111:capacity-reservation/{_ID}",
        "arn:aws:ec2:us-east-1:111122223333:capacity-reservation/cr-1",
        f"arn:aws:ec2:us-east-1:111122223333:instance/{_ID}",
    ],
)
def test_what_is_neither_id_nor_arn_is_refused(setting: str, wrong: Any) -> None:
    assert _refusal(Capacity.prioritized, **{setting: [wrong]}) == (
        f"{setting} must be ids or ARNs of capacity reservations, such as 'cr-0a1b2c3d4e5f67890', got {wrong!r}"
    )


@pytest.mark.parametrize("setting", ["reservations", "capacity_blocks"])
@pytest.mark.parametrize("right", [_ID, _ARN, _ARN.replace("arn:aws:", "arn:aws-us-gov:"), "cr-0a1b2c3d"])
def test_ids_and_arns_are_taken(setting: str, right: str) -> None:
    settings: dict[str, Any] = {setting: [right]}
    made = Capacity.prioritized(**settings)
    assert getattr(made, setting) == (right,)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        (
            {},
            "Capacity.prioritized() needs at least one id in reservations or capacity_blocks, got none: for "
            "On-Demand Instances alone use Capacity.on_demand()",
        ),
        (
            {"on_demand": False},
            "Capacity.prioritized() needs at least one id in reservations or capacity_blocks, got none: for "
            "On-Demand Instances alone use Capacity.on_demand()",
        ),
        (
            {"reservations": [_ID, _OTHER, _ID]},
            "reservations and capacity_blocks must name each id once, got cr-0a1b2c3d4e5f67890 2 times",
        ),
        (
            {"reservations": [_ID], "capacity_blocks": [_OTHER, _ID]},
            "reservations and capacity_blocks must name each id once, got cr-0a1b2c3d4e5f67890 2 times",
        ),
        (
            {"reservations": [_ID, _ARN], "capacity_blocks": [_ID]},
            "reservations and capacity_blocks must name each id once, got cr-0a1b2c3d4e5f67890 3 times",
        ),
        (
            {"reservations": _ID},
            "reservations must be a list, each item of it text, got 'cr-0a1b2c3d4e5f67890'",
        ),
        (
            {"capacity_blocks": None},
            "capacity_blocks must be a list, each item of it text, got None",
        ),
        ({"reservations": [_ID], "on_demand": "yes"}, "on_demand must be True or False, got 'yes'"),
        (
            {"reservations": ["cr-1"], "capacity_blocks": ["cr-2"], "on_demand": 1},
            "reservations must be ids or ARNs of capacity reservations, such as 'cr-0a1b2c3d4e5f67890', got 'cr-1'\n"
            "capacity_blocks must be ids or ARNs of capacity reservations, such as 'cr-0a1b2c3d4e5f67890', got "
            "'cr-2'\n"
            "on_demand must be True or False, got 1",
        ),
    ],
)
def test_an_order_of_priority_that_makes_no_sense_is_refused(settings: dict[str, Any], message: str) -> None:
    assert _refusal(Capacity.prioritized, **settings) == message


@pytest.mark.parametrize(
    ("settings", "types", "classes"),
    [
        ({"reservations": [_ID]}, ("on-demand-capacity-reservation", "on-demand"), ("on-demand",)),
        (
            {"reservations": [_ID], "on_demand": False},
            ("on-demand-capacity-reservation",),
            ("on-demand",),
        ),
        ({"capacity_blocks": [_ID]}, ("capacity-block", "on-demand"), ("on-demand", "capacity-block")),
        ({"capacity_blocks": [_ID], "on_demand": False}, ("capacity-block",), ("capacity-block",)),
        (
            {"capacity_blocks": [_ID], "reservations": [_OTHER]},
            ("on-demand-capacity-reservation", "capacity-block", "on-demand"),
            ("on-demand", "capacity-block"),
        ),
    ],
)
def test_what_is_paid_for_comes_first_and_on_demand_last(
    settings: dict[str, Any], types: tuple[str, ...], classes: tuple[str, ...]
) -> None:
    made = Capacity.prioritized(**settings)
    assert (tuple(made.capacity_types), made.usage_classes) == (types, classes)


class _NoOffset(tzinfo):
    def utcoffset(self, _when: datetime | None) -> None:
        return None

    def dst(self, _when: datetime | None) -> None:
        return None

    def tzname(self, _when: datetime | None) -> str:
        return "nowhere"


_WANTED_END = (
    "end must be a datetime with its zone, such as datetime(2026, 12, 24, 18, tzinfo=UTC), or UNTIL_CANCELLED: an "
    "idle reservation is billed all the same; got "
)


@pytest.mark.parametrize(
    "wrong",
    [
        datetime(2026, 12, 24, 18),  # noqa: DTZ001  # that is what is wrong
        datetime(2026, 12, 24, 18, tzinfo=_NoOffset()),
        _END.date(),
        "2026-12-24T18:00:00Z",
        "until-cancelled",
        None,
        0,
    ],
)
def test_an_end_that_could_be_misread_is_refused(wrong: Any) -> None:
    given = "a datetime" if "object at" in repr(wrong) else repr(wrong)
    assert _refusal(Capacity.reservation, end=wrong) == f"{_WANTED_END}{given}"


def test_an_end_must_be_said() -> None:
    assert _refusal(Capacity.reservation) == f"{_WANTED_END}None"


@pytest.mark.parametrize(
    ("end", "date"),
    [
        (_END, "2026-12-24T18:00:00Z"),
        (datetime(2026, 12, 24, 23, 30, tzinfo=timezone(timedelta(hours=5, minutes=30))), "2026-12-24T18:00:00Z"),
        (datetime(2026, 12, 31, 20, 0, 59, 999999, tzinfo=timezone(timedelta(hours=-8))), "2027-01-01T04:00:59Z"),
        (UNTIL_CANCELLED, None),
        (UntilCancelled.UNTIL_CANCELLED, None),
    ],
)
def test_an_end_is_told_in_utc(end: datetime | UntilCancelled, date: str | None) -> None:
    made = Capacity.reservation(end=end)
    assert made.reservation_settings.get("end_date") == date


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"on_idle": "keep"}, "on_idle must be OnIdle.KEEP or OnIdle.RELEASE, got 'keep'"),
        ({"on_idle": None}, "on_idle must be OnIdle.KEEP or OnIdle.RELEASE, got None"),
        *(
            (
                {"instance_platform": wrong},
                f"instance_platform must be {_PLATFORMS}, since nodes run Linux, got {wrong!r}",
            )
            for wrong in ("Windows", "linux/unix", "Linux/Unix", "", None, 3)
        ),
    ],
)
def test_a_reservation_of_what_nodes_cannot_use_is_refused(settings: dict[str, Any], message: str) -> None:
    assert _refusal(Capacity.reservation, **{"end": UNTIL_CANCELLED, **settings}) == message


@pytest.mark.parametrize("platform", LINUX_PLATFORMS)
def test_every_linux_platform_of_ec2_is_taken(platform: str) -> None:
    made = Capacity.reservation(end=_END, instance_platform=platform)
    existing = Capacity.from_reservation(_ID, instance_platform=platform)
    assert made.instance_platform == existing.instance_platform == platform


def test_a_reservation_is_kept_and_of_linux_unless_it_is_said_otherwise() -> None:
    made = Capacity.reservation(end=_END)
    assert (made.on_idle, made.instance_platform) == (OnIdle.KEEP, "Linux/UNIX")


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        (
            {"placement_group": ""},
            "placement_group must have 1 to 255 ASCII characters, got '': leave it out, or give one",
        ),
        ({"placement_group": 3}, "placement_group must be the name of a cluster placement group, got 3"),
        ({"availability_zone": ""}, "availability_zone must be a zone, such as 'us-east-1b', got ''"),
        ({"availability_zone": 1}, "availability_zone must be a zone, such as 'us-east-1b', got 1"),
        (
            {"instance_platform": "Windows"},
            f"instance_platform must be {_PLATFORMS}, since nodes run Linux, got 'Windows'",
        ),
        ({"instance_count": 0}, "instance_count must be at least 1, got 0"),
        ({"instance_count": -1}, "instance_count must be at least 1, got -1"),
        ({"instance_count": 1.5}, "instance_count must be a whole number of at least 1, got 1.5"),
        ({"instance_count": float("nan")}, "instance_count must be a whole number of at least 1, got nan"),
        ({"instance_count": "8"}, "instance_count must be a whole number of at least 1, got '8'"),
        ({"instance_count": True}, "instance_count must be a whole number of at least 1, got True"),
        (
            {"placement_group": "", "availability_zone": "", "instance_count": 0},
            "placement_group must have 1 to 255 ASCII characters, got '': leave it out, or give one\n"
            "availability_zone must be a zone, such as 'us-east-1b', got ''\n"
            "instance_count must be at least 1, got 0",
        ),
    ],
)
def test_what_no_reservation_is_like_is_refused(settings: dict[str, Any], message: str) -> None:
    assert _refusal(Capacity.from_reservation, _ID, **settings) == message


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"availability_zone": ""}, "availability_zone must be a zone, such as 'us-east-1b', got ''"),
        ({"instance_count": 0}, "instance_count must be at least 1, got 0"),
        ({"instance_count": True}, "instance_count must be a whole number of at least 1, got True"),
    ],
)
def test_what_no_block_is_like_is_refused(settings: dict[str, Any], message: str) -> None:
    assert _refusal(Capacity.capacity_block, _ID, **settings) == message


@pytest.mark.parametrize("call", [Capacity.from_reservation, Capacity.capacity_block])
def test_the_smallest_count_is_taken(call: Call) -> None:
    made = call(_ID, instance_count=1)
    assert made.instance_count == 1


_NO_PRICE = [0, 0.0, -1, -0.5, float("nan"), float("inf"), float("-inf"), True, False, "12", "12.5", [12], _END]


@pytest.mark.parametrize(
    ("call", "lowest", "wrong"),
    [
        (call, lowest, wrong)
        for call, lowest, just_below in (
            (Capacity.spot, "0.001", 0.0009999),
            (Capacity.spot_fleet, "0.000001", 0.0000009),
        )
        for wrong in (*_NO_PRICE, just_below, 1_000_000.01, 1e308)
    ],
)
def test_what_is_no_price_is_refused(call: Call, lowest: str, wrong: Any) -> None:
    kind = "" if isinstance(wrong, int | float) and not isinstance(wrong, bool) and isfinite(wrong) else "a number "
    assert _refusal(call, max_price=wrong) == (f"max_price must be {kind}from {lowest} to 1000000, got {wrong!r}")


@pytest.mark.parametrize(
    ("price", "text"),
    [
        (None, None),
        (12.5, "12.5"),
        (12, "12"),
        (100, "100"),
        (100.0, "100"),
        (0.001, "0.001"),
        (0.1 + 0.2, "0.3"),
        (31.464, "31.464"),
        (1e6, "1000000"),
        (123456.789, "123456.789"),
    ],
)
@pytest.mark.parametrize("call", [Capacity.spot, Capacity.spot_fleet])
def test_a_price_is_told_without_an_exponent(call: Call, price: float | None, text: str | None) -> None:
    made = call(max_price=price)
    assert made.max_price_text == text


def test_the_lowest_price_of_a_fleet_has_no_exponent_either() -> None:
    made = Capacity.spot_fleet(max_price=0.000001)
    assert made.max_price_text == "0.000001"


def test_what_is_not_known_yet_is_not_checked() -> None:
    stack = new_stack()
    text = CfnParameter(stack, "Text").value_as_string
    number: Any = CfnParameter(stack, "Number", type="Number").value_as_number
    Capacity.reservation(end=_END, instance_platform=text)
    Capacity.from_reservation(
        text, placement_group=text, availability_zone=text, instance_platform=text, instance_count=number
    )
    Capacity.capacity_block(text, availability_zone=text, instance_count=number)
    Capacity.prioritized(reservations=[text], capacity_blocks=[_ID])
    price = Capacity.spot(max_price=number)
    assert Token.is_unresolved(price.max_price_text)
    assert stack.resolve(price.max_price_text) == {"Ref": "Number"}
