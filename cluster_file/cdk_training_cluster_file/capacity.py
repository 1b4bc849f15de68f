"""How a node group's nodes are bought: `capacity:` in a cluster file, with the words of `Capacity`'s own calls."""

from collections.abc import Mapping
from datetime import datetime
from difflib import get_close_matches
from typing import Annotated, Any, Literal

from pydantic import ConfigDict, Field, GetCoreSchemaHandler, GetJsonSchemaHandler, model_validator
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema, PydanticCustomError, core_schema

from cdk_training_cluster import UNTIL_CANCELLED, Capacity, OnIdle
from cdk_training_cluster_file import fields
from cdk_training_cluster_file.fields import Count, Flag
from cdk_training_cluster_file.model_base import Because, Settings

_EXAMPLE_ID = "cr-0a1b2c3d4e5f67890"
_EXAMPLE_PLAN = "arn:aws:sagemaker:us-east-1:111122223333:training-plan/llama"


class CallSettings(Settings):
    """The settings of one way to buy."""

    def to_capacity(self) -> Capacity:
        """Return the capacity as the constructs take it.

        Raises:
            ValueError: The settings contradict each other.
        """
        return self._capacity()

    def _capacity(self) -> Capacity:
        raise NotImplementedError

    @model_validator(mode="after")
    def _agree_with_each_other(self) -> "CallSettings":
        self.to_capacity()
        return self


class OnDemandSettings(CallSettings):
    """On-Demand Instances: always the same price, and no promise that they can be had."""

    def _capacity(self) -> Capacity:
        return Capacity.on_demand()


class ReservationSettings(CallSettings):
    """A new On-Demand Capacity Reservation for the whole group, billed from its start until its end, used or not."""

    end: Annotated[fields.ReservationEnd, Because("an idle reservation is billed all the same")] = Field(
        examples=["2026-12-24T18:00:00Z", fields.UNTIL_CANCELLED]
    )
    """When the reservation ends, as a time with its offset from UTC, or `until_cancelled`."""

    on_idle: Literal["keep", "release"] = "keep"
    """What becomes of the reservation while the group is stopped: `keep` holds, and pays for, every node;
    `release` gives back all but one, which bills on, and a later start may find that EC2 has no more of them."""

    instance_platform: fields.InstancePlatform = "Linux/UNIX"
    """The operating system that the reservation is billed for."""

    def _capacity(self) -> Capacity:
        return Capacity.reservation(
            end=UNTIL_CANCELLED if self.end == fields.UNTIL_CANCELLED else datetime.fromisoformat(self.end),
            on_idle=OnIdle[self.on_idle.upper()],
            instance_platform=self.instance_platform,
        )


class ExistingReservationSettings(CallSettings):
    """A Capacity Reservation that exists already; it is billed whether the nodes run or not."""

    id: fields.CapacityReservationId = Field(examples=[_EXAMPLE_ID])
    """The reservation's id."""

    placement_group: fields.PlacementGroupName | None = Field(default=None, examples=["my-group"])
    """The cluster placement group that the reservation was made in. Left out: it is in none."""

    availability_zone: fields.AvailabilityZone | None = Field(default=None, examples=["us-east-1b"])
    """The zone it is in. May be left out; if it is given it has to be the cluster's."""

    instance_platform: fields.InstancePlatform | None = None
    """The operating system it was made for. May be left out; if it is given it is checked."""

    instance_count: Count | None = Field(default=None, examples=[8])
    """How many instances it holds. May be left out; if it is given the groups that use it must not want more."""

    def _capacity(self) -> Capacity:
        return Capacity.from_reservation(
            self.id,
            placement_group=self.placement_group,
            availability_zone=self.availability_zone,
            instance_platform=self.instance_platform,
            instance_count=self.instance_count,
        )


class CapacityBlockSettings(CallSettings):
    """A Capacity Block that is bought already; the nodes come with its start and go before its end."""

    id: fields.CapacityReservationId = Field(examples=[_EXAMPLE_ID])
    """The block's id, which is that of a Capacity Reservation."""

    availability_zone: fields.AvailabilityZone | None = Field(default=None, examples=["us-east-1b"])
    """The zone it is in. May be left out; if it is given it has to be the cluster's."""

    instance_count: Count | None = Field(default=None, examples=[8])
    """How many instances it holds. May be left out; if it is given the groups that use it must not want more."""

    def _capacity(self) -> Capacity:
        return Capacity.capacity_block(
            self.id, availability_zone=self.availability_zone, instance_count=self.instance_count
        )


class TrainingPlanSettings(CallSettings):
    """A SageMaker training plan that is bought already, for orchestrator hyperpod."""

    arn: str = Field(examples=[_EXAMPLE_PLAN])
    """The plan's ARN."""

    def _capacity(self) -> Capacity:
        return Capacity.training_plan(self.arn)


class SpotSettings(CallSettings):
    """Spot Instances through the group itself, of whichever of its types EC2 can best spare."""

    max_price: fields.SpotPrice | None = Field(default=None, examples=[12.5])
    """The most that an instance-hour may cost, in USD. Left out: the On-Demand price."""

    capacity_rebalancing: fields.Flag = Field(default=False, examples=[True])
    """Whether Auto Scaling replaces and ends a node that EC2 calls likelier to be interrupted. Left out: no."""

    def _capacity(self) -> Capacity:
        return Capacity.spot(max_price=self.max_price, capacity_rebalancing=self.capacity_rebalancing)


class SpotFleetSettings(CallSettings):
    """Spot Instances through a Spot Fleet, for extra nodes that a job can do without."""

    max_price: fields.FleetPrice | None = Field(default=None, examples=[12.5])
    """The most that an instance-hour may cost, in USD. Left out: the On-Demand price."""

    def _capacity(self) -> Capacity:
        return Capacity.spot_fleet(max_price=self.max_price)


_OneOrMore = Annotated[tuple[fields.CapacityReservationIdOrArn, ...], Field(min_length=1)]


class PrioritizedSettings(CallSettings):
    """Reservations and Capacity Blocks that are there already, in this order, and On-Demand Instances after them."""

    model_config = ConfigDict(
        json_schema_extra={"anyOf": [{"required": ["reservations"]}, {"required": ["capacity_blocks"]}]}
    )

    reservations: _OneOrMore | None = Field(default=None, examples=[[_EXAMPLE_ID]])
    """The ids of Capacity Reservations, used first. Left out: none."""

    capacity_blocks: _OneOrMore | None = Field(default=None, examples=[[_EXAMPLE_ID]])
    """The ids of Capacity Blocks, used when the reservations are full. Left out: none."""

    on_demand: Flag = True
    """Whether what is still missing is bought on demand."""

    def _capacity(self) -> Capacity:
        if not self.reservations and not self.capacity_blocks:
            raise ValueError(
                f"needs reservations or capacity_blocks, such as reservations: [{_EXAMPLE_ID}]; for On-Demand "
                "Instances alone write capacity: on_demand"
            )
        return Capacity.prioritized(
            reservations=self.reservations or (),
            capacity_blocks=self.capacity_blocks or (),
            on_demand=self.on_demand,
        )


class CapacitySettings(Settings):
    """One way to buy nodes, with its settings."""

    model_config = ConfigDict(json_schema_extra={"minProperties": 1, "maxProperties": 1})

    on_demand: OnDemandSettings | None = None
    """On-Demand Instances, which is what a group has whose `capacity` is left out."""

    reservation: ReservationSettings | None = None
    """A new On-Demand Capacity Reservation for the whole group, billed until its end, used or not."""

    from_reservation: ExistingReservationSettings | None = None
    """A Capacity Reservation that exists already."""

    capacity_block: CapacityBlockSettings | None = None
    """A Capacity Block that is bought already."""

    training_plan: TrainingPlanSettings | None = None
    """A SageMaker training plan that is bought already, for orchestrator hyperpod."""

    spot: SpotSettings | None = None
    """Spot Instances, at a discount and with two minutes' notice: the recommended way to buy Spot."""

    spot_fleet: SpotFleetSettings | None = None
    """A Spot Fleet, for extra nodes that a job can do without."""

    prioritized: PrioritizedSettings | None = None
    """Reservations, then Capacity Blocks, then on demand."""

    @property
    def call(self) -> str:
        """The way that is named."""
        return next(name for name, value in self if value is not None)

    @property
    def settings(self) -> CallSettings:
        """The settings of the one way that is named."""
        return next(value for _, value in self if isinstance(value, CallSettings))

    def to_capacity(self) -> Capacity:
        """Return the capacity as the constructs take it."""
        return self.settings.to_capacity()


WORDS = ("on_demand", "spot", "spot_fleet")
"""The ways to buy that need no settings: each is a word of its own."""

CALLS = tuple(CapacitySettings.model_fields)
"""All ways to buy, as the keys of their settings."""


class WordOrSettings:
    """Marks `CapacitySettings` that may be written as a word where they would be empty."""

    def __get_pydantic_core_schema__(self, source: type[Any], handler: GetCoreSchemaHandler) -> CoreSchema:
        return core_schema.no_info_before_validator_function(_one_call, handler(source))

    def __get_pydantic_json_schema__(self, schema: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        return {"anyOf": [{"enum": list(WORDS)}, handler(schema)]}


CapacityChoice = Annotated[CapacitySettings, WordOrSettings()]


EMPTY = "empty_call"
"""The kind of mistake that a way to buy without a value is; reading the file reports it for any setting."""


def _one_call(value: object) -> object:
    """Return the settings of one call, whichever way they are written."""
    if isinstance(value, CapacitySettings):
        return value
    if isinstance(value, Mapping):
        _refuse_all_but_one(value)
        return value
    if isinstance(value, str) and value in WORDS:
        return {value: {}}
    if isinstance(value, str) and value in CALLS:
        raise _told(f"{value} has settings that cannot be left out; write {example_of(value)}")
    with_settings = ", ".join(call for call in CALLS if call not in WORDS)
    raise PydanticCustomError(
        "form",
        "must be {words} or, with settings, {with_settings}",
        {
            "words": ", ".join(WORDS),
            "with_settings": with_settings,
            "near": next(iter(get_close_matches(value, CALLS, n=1)), "") if isinstance(value, str) else "",
        },
    )


def _refuse_all_but_one(calls: Mapping[object, object]) -> None:
    if not calls:
        raise _told(f"must name one way to buy, got none; write one, such as {example_of('spot')}")
    if len(calls) > 1:
        named = " and ".join(map(str, calls))
        raise _told(f"must name one way to buy, got {named}; make a node group for each")
    call, settings = next(iter(calls.items()))
    if settings is None:
        raise PydanticCustomError(EMPTY, "{call} has no value", {"call": str(call)})


_EXAMPLES = {
    "reservation": "{reservation: {end: until_cancelled}}",
    "from_reservation": f"{{from_reservation: {{id: {_EXAMPLE_ID}}}}}",
    "capacity_block": f"{{capacity_block: {{id: {_EXAMPLE_ID}}}}}",
    "training_plan": f"{{training_plan: {{arn: {_EXAMPLE_PLAN}}}}}",
    "prioritized": f"{{prioritized: {{reservations: [{_EXAMPLE_ID}], on_demand: true}}}}",
}


def example_of(call: str) -> str:
    """Show how a way to buy is written.

    Args:
        call: Its name.
    """
    return f"capacity: {_EXAMPLES.get(call, call)}"


def _told(sentence: str) -> PydanticCustomError:
    # As a value of the template's, so that braces in a sentence are no places to fill.
    return PydanticCustomError("told", "{sentence}", {"sentence": sentence})
