"""`capacity:` of a node group: every way to write it, what the constructs take for it, and its mistakes."""

import inspect
import json
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, get_args

import jsonschema
import pytest

from cdk_training_cluster import UNTIL_CANCELLED, Capacity, OnIdle
from cdk_training_cluster_file import CapacitySettings, json_schema, read_cluster_file
from cdk_training_cluster_file.capacity import CALLS
from cdk_training_cluster_file.source import parse
from cluster_files import RIGHT, problems

SCHEMA = jsonschema.Draft202012Validator(json_schema())
ID, ARN = "cr-0a1b2c3d4e5f67890", "arn:aws:ec2:us-east-1:111122223333:capacity-reservation/cr-0a1b2c3d4e5f67890"
PLAN = "arn:aws:sagemaker:us-east-1:111122223333:training-plan/llama"
END = datetime(2026, 12, 24, 18, tzinfo=UTC)
SHARED: dict[str, Any] = {"availability_zone": "us-east-1b", "instance_count": 8}

# Every way to write a capacity, and what the constructs take for it.
CAPACITIES = {
    "a word": ("on_demand", Capacity.on_demand()),
    "a word for Spot": ("spot", Capacity.spot()),
    "no settings": ("{on_demand: {}}", Capacity.on_demand()),
    "a price": ("{spot: {max_price: 12.5}}", Capacity.spot(max_price=12.5)),
    "rebalancing": ("{spot: {capacity_rebalancing: true}}", Capacity.spot(capacity_rebalancing=True)),
    "no end": ("{reservation: {end: until_cancelled}}", Capacity.reservation(end=UNTIL_CANCELLED)),
    "an end": ("{reservation: {end: 2026-12-24T18:00:00Z}}", Capacity.reservation(end=END)),
    "an end with an offset": ("{reservation: {end: 2026-12-24T19:00:00+01:00}}", Capacity.reservation(end=END)),
    "release": (
        "{reservation: {end: until_cancelled, on_idle: release}}",
        Capacity.reservation(end=UNTIL_CANCELLED, on_idle=OnIdle.RELEASE),
    ),
    "an existing reservation": (f"{{from_reservation: {{id: {ID}}}}}", Capacity.from_reservation(ID)),
    "all of a reservation": (
        f"{{from_reservation: {{id: {ID}, placement_group: my group, instance_platform: Linux/UNIX, "
        "availability_zone: us-east-1b, instance_count: 8}}",
        Capacity.from_reservation(ID, placement_group="my group", instance_platform="Linux/UNIX", **SHARED),
    ),
    "a block": (f"{{capacity_block: {{id: {ID}}}}}", Capacity.capacity_block(ID)),
    "all of a block": (
        f"{{capacity_block: {{id: {ID}, availability_zone: us-east-1b, instance_count: 8}}}}",
        Capacity.capacity_block(ID, **SHARED),
    ),
    "in turn": (
        f"{{prioritized: {{reservations: [{ID}], capacity_blocks: [cr-0a1b2c3d], on_demand: false}}}}",
        Capacity.prioritized(reservations=[ID], capacity_blocks=["cr-0a1b2c3d"], on_demand=False),
    ),
    "in turn, a shared one": (
        f"{{prioritized: {{reservations: [{ARN!r}]}}}}",
        Capacity.prioritized(reservations=[ARN]),
    ),
}


@pytest.mark.parametrize(("written", "capacity"), CAPACITIES.values(), ids=CAPACITIES)
def test_a_capacity_is_what_the_call_of_its_name_makes(tmp_path: Path, written: str, capacity: Capacity) -> None:
    file = tmp_path / "cluster.yaml"
    file.write_text(with_capacity(written))
    assert read_cluster_file(file).node_groups[0].capacity.to_capacity() == capacity
    SCHEMA.validate(json.loads(json.dumps(parse(file.read_text()).value)))


def test_the_calls_are_those_of_the_library() -> None:
    library = {name for name, value in vars(Capacity).items() if isinstance(value, staticmethod)}
    assert set(CALLS) == library


@pytest.mark.parametrize("call", CALLS)
def test_the_settings_of_a_call_are_its_parameters_in_the_same_words(call: str) -> None:
    parameters = inspect.signature(getattr(Capacity, call)).parameters
    named = {name.replace("capacity_reservation_id", "id"): each.default for name, each in parameters.items()}
    settings = CapacitySettings.model_fields[call].annotation
    (model,) = (each for each in get_args(settings) if each is not type(None))
    assert set(named) == set(model.model_fields)
    # The library refuses a call without an end with a message of its own.
    named.update({} if call != "reservation" else {"end": inspect.Parameter.empty})
    for name, field in model.model_fields.items():
        assert field.is_required() == (named[name] is inspect.Parameter.empty), name
    made = model.model_validate(NEEDED.get(call, {}))
    assert made.to_capacity() == getattr(Capacity, call)(**REQUIRED.get(call, {}))


NEEDED: dict[str, dict[str, Any]] = {
    "reservation": {"end": "until_cancelled"},
    "from_reservation": {"id": ID},
    "capacity_block": {"id": ID},
    "training_plan": {"arn": PLAN},
    "prioritized": {"reservations": [ID]},
}
REQUIRED: dict[str, dict[str, Any]] = {
    "reservation": {"end": UNTIL_CANCELLED},
    "from_reservation": {"capacity_reservation_id": ID},
    "capacity_block": {"capacity_reservation_id": ID},
    "training_plan": {"arn": PLAN},
    "prioritized": {"reservations": [ID]},
}


PLATFORMS = (
    "Linux with SQL Server Enterprise, Linux with SQL Server Standard, Linux with SQL Server Web, Linux/UNIX, "
    "RHEL with HA, RHEL with HA and SQL Server Enterprise, RHEL with HA and SQL Server Standard, RHEL with SQL "
    "Server Enterprise, RHEL with SQL Server Standard, RHEL with SQL Server Web, Red Hat Enterprise Linux, SUSE "
    "Linux or Ubuntu Pro, since nodes run Linux"
)
CALLS_WITH_SETTINGS = "reservation, from_reservation, capacity_block, training_plan, prioritized"
CHOICES = f"must be on_demand, spot, spot_fleet or, with settings, {CALLS_WITH_SETTINGS}"
ENDS = (
    "must be until_cancelled or a time with its offset from UTC, such as 2026-12-24T18:00:00Z or "
    "2026-12-24T18:00:00+01:00"
)
RESERVATION_ID = "must be the id of a Capacity Reservation, such as cr-0a1b2c3d4e5f67890"

# What is written as the capacity of a group, and all that is said of it then.
WRONG = {
    "a way to buy that is not known": ("reserved", [f'{CHOICES}, got "reserved"; did you mean reservation?']),
    "a way to buy with a hyphen": ("on-demand", [f'{CHOICES}, got "on-demand"; did you mean on_demand?']),
    "a number": ("5", [f"{CHOICES}, got 5"]),
    "a list of ways to buy": ("[spot, on_demand]", [f"{CHOICES}, got a list"]),
    "a word for a call with settings": (
        "reservation",
        [
            "reservation has settings that cannot be left out; write capacity: {reservation: {end: until_cancelled}}",
        ],
    ),
    "no way to buy": ("{}", ["must name one way to buy, got none; write one, such as capacity: spot"]),
    "two ways to buy": (
        "{spot: {}, spot_fleet: {}}",
        ["must name one way to buy, got spot and spot_fleet; make a node group for each"],
    ),
    "a misspelt way to buy with settings": (
        "{capacity_blok: {id: cr-0a1b2c3d}}",
        [".capacity_blok: unknown key; did you mean capacity_block?"],
    ),
    "settings without a value": ("{spot: }", [".spot: has no value; write capacity: spot"]),
    "a misspelt way to buy without a value": (
        "{spt: }",
        [".spt: has no value; write one, or leave the key out"],
    ),
    "settings that are none": (
        "{spot: 12}",
        [".spot: must be a mapping (key: value), such as spot: {max_price: 12.5}, got 12"],
    ),
    "a list for settings": (
        f"{{capacity_block: [{ID}]}}",
        [f".capacity_block: must be a mapping (key: value), such as capacity_block: {{id: {ID}}}, got a list"],
    ),
    "settings of a call that has none": ("{on_demand: 5}", [".on_demand: must be a mapping (key: value), got 5"]),
    "an ARN where only an id will do": (
        f"{{from_reservation: {{id: {ARN!r}}}}}",
        [
            f".from_reservation.id: {RESERVATION_ID}, since only prioritized takes ARNs, got "
            f'"{ARN[:59]}…"; did you mean {ID}?'
        ],
    ),
    "settings where there are none": (
        "{on_demand: {end: until_cancelled}}",
        [".on_demand.end: unknown key; there is nothing to set here"],
    ),
    "a reservation without an end": (
        "{reservation: {on_idle: keep}}",
        [
            ".reservation.end: is missing; add it, such as end: '2026-12-24T18:00:00Z' or end: until_cancelled; an "
            "idle reservation is billed all the same",
        ],
    ),
    "an end without an offset": (
        "{reservation: {end: 2026-12-24T18:00:00}}",
        [f'.reservation.end: {ENDS}, got "2026-12-24T18:00:00"'],
    ),
    "an end that is a number": (
        "{reservation: {end: 20261224}}",
        ['.reservation.end: must be text, got 20261224; put it in quotes: "20261224"'],
    ),
    "an end that there is not": (
        "{reservation: {end: 2026-02-30T18:00:00Z}}",
        ['.reservation.end: must be a date and time that exist, got "2026-02-30T18:00:00Z"'],
    ),
    "an end that never comes, misspelt": (
        "{reservation: {end: until_canceled}}",
        [f'.reservation.end: {ENDS}, got "until_canceled"; did you mean until_cancelled?'],
    ),
    **{
        f"an end that never comes, as {word}": (
            f"{{reservation: {{end: {word}}}}}",
            [f'.reservation.end: {ENDS}, got "{word}"; did you mean until_cancelled?'],
        )
        for word in ("UNTIL_CANCELLED", "until-cancelled", "Until_Cancelled")
    },
    "a platform that is none": (
        "{reservation: {end: until_cancelled, instance_platform: Linux/Unix}}",
        [f'.reservation.instance_platform: must be {PLATFORMS}, got "Linux/Unix"; did you mean Linux/UNIX?'],
    ),
    "a reservation without its id": (
        "{from_reservation: {placement_group: a}}",
        [".from_reservation.id: is missing; add it, such as id: cr-0a1b2c3d4e5f67890"],
    ),
    "all wrong with a reservation": (
        "{from_reservation: {id: 1, placement_group: '', availability_zone: us-east-1, instance_count: 0}}",
        [
            '.from_reservation.id: must be text, got 1; put it in quotes: "1"',
            '.from_reservation.placement_group: must be the name of a cluster placement group, got ""',
            ".from_reservation.availability_zone: must be the name of an Availability Zone, such as us-east-1b, "
            'got "us-east-1"',
            ".from_reservation.instance_count: must be at least 1, got 0",
        ],
    ),
    "a price of nothing": (
        "{spot_fleet: {max_price: 0.0}}",
        [".spot_fleet.max_price: must be at least 0.000001, got 0.0"],
    ),
    "a price that AWS cannot name": (
        "{spot: {max_price: 0.0000001}}",
        [".spot.max_price: must be at least 0.001, got 1e-07"],
    ),
    "nothing in turn": (
        "{prioritized: {on_demand: true}}",
        [
            ".prioritized: needs reservations or capacity_blocks, such as reservations: [cr-0a1b2c3d4e5f67890]; for "
            "On-Demand Instances alone write capacity: on_demand",
        ],
    ),
    "an empty list of blocks": (
        "{prioritized: {capacity_blocks: []}}",
        [
            ".prioritized.capacity_blocks: must hold at least 1, such as capacity_blocks: "
            "[cr-0a1b2c3d4e5f67890], got []"
        ],
    ),
    "a wrong id in a list": (
        "{prioritized: {capacity_blocks: [cr-0a1b2c3d, block]}}",
        [
            f".prioritized.capacity_blocks[1]: {RESERVATION_ID}, or the ARN of one that another account shares, "
            'got "block"',
        ],
    ),
    "an id twice": (
        "{prioritized: {reservations: [cr-0a1b2c3d], capacity_blocks: [cr-0a1b2c3d]}}",
        [".prioritized: reservations and capacity_blocks must name each id once, got cr-0a1b2c3d 2 times"],
    ),
}


@pytest.mark.parametrize(("written", "said"), WRONG.values(), ids=WRONG)
def test_one_mistake_in_a_capacity_is_one_sentence(tmp_path: Path, written: str, said: Sequence[str]) -> None:
    place = "cluster.yaml:11: node_groups[0].capacity"
    found = problems(tmp_path, with_capacity(written))
    assert found == [f"{place}{each}" if each.startswith(".") else f"{place}: {each}" for each in said]


def with_capacity(written: str) -> str:
    return RIGHT.replace("count: 8", f"count: 8\n    capacity: {written}")
