"""Settings that the constructs have too take their bounds from there, and become what the constructs take."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Annotated, Any

import pytest
from aws_cdk import Duration
from pydantic import Field, ValidationError

from cdk_training_cluster.validation.bounds import Form, Minutes, Number, Whole
from cdk_training_cluster_file.derivation import ModelOf
from cdk_training_cluster_file.model_base import Settings


class Ending(Enum):
    SLOW = "at the end"
    FAST = "now"


@dataclass(frozen=True, kw_only=True)
class Engine:
    cylinders: Annotated[int, Whole(minimum=2, maximum=12)] = 4


@dataclass(frozen=True, kw_only=True)
class Trip:
    name: Annotated[str, Form(pattern=re.compile("(a|b)+"), wanted="a word, such as 'ab'")]
    speed: Annotated[float, Number(above=0, maximum=50)] | None = None
    rest: Annotated[Duration, Minutes(minimum=60, maximum=48 * 60)] | None = None
    stop_timeout: Annotated[Duration, Minutes(minimum=5, maximum=60)] | None = None
    wait_after: Annotated[Duration, Minutes(minimum=24 * 60, maximum=10 * 24 * 60, step=24 * 60)] | None = None
    days: Sequence[Annotated[int, Whole(minimum=1, maximum=31)]] = ()
    prices: Mapping[str, Annotated[float, Number(minimum=1)]] = field(default_factory=dict)
    endings: Sequence[Ending] = ()
    engines: Sequence[Engine] = ()
    is_dry: bool = False
    place: object = None


class EngineSettings(Settings, ModelOf[Engine]):
    cylinders: int = 4


class TripSettings(Settings, ModelOf[Trip], names={"dry": "is_dry"}):
    name: str = "ab"
    speed: float | None = None
    rest_hours: int = 1
    stop_minutes: float | None = None
    wait_after_days: int | None = None
    days: tuple[int, ...] = ()
    prices: dict[str, float] = Field(default={})
    endings: tuple[str, ...] = ()
    engines: tuple[EngineSettings, ...] = ()
    dry: bool = False


class LongTripSettings(TripSettings):
    place: str | None = None


@pytest.mark.parametrize(
    ("setting", "right", "wrong"),
    [
        ("name", ["ab"], ["c", ""]),
        ("speed", [0.5, 50, None], [0, 50.5, "5", True]),
        ("rest_hours", [1, 48], [0, 49, 1.5, "1"]),
        ("stop_minutes", [5, 7.5, 60, None], [4.9, 61, "5"]),
        ("wait_after_days", [1, 10, None], [0, 11, 1.5]),
        ("days", [[], [1, 31]], [[0], [1, 32], ["1"]]),
        ("prices", [{}, {"x": 1}], [{"x": 0.5}, {"x": "1"}]),
        ("engines", [[{"cylinders": 12}]], [[{"cylinders": 13}]]),
    ],
)
@pytest.mark.parametrize("model", [TripSettings, LongTripSettings])
def test_a_setting_has_the_bounds_of_its_argument(
    model: type[TripSettings], setting: str, right: list[object], wrong: list[object]
) -> None:
    for value in right:
        model.model_validate({setting: value})
    for value in wrong:
        with pytest.raises(ValidationError):
            model.model_validate({setting: value})


def test_a_setting_keeps_bounds_of_its_own() -> None:
    class Own(Settings, ModelOf[Engine]):
        cylinders: Annotated[int, "any"] = 4

    assert Own.model_validate({"cylinders": 40}).cylinders == 40


def test_a_unit_without_a_rest_has_no_step_in_the_schema() -> None:
    schema = TripSettings.model_json_schema()["properties"]
    assert schema["rest_hours"] == {
        "default": 1,
        "maximum": 48,
        "minimum": 1,
        "title": "Rest Hours",
        "type": "integer",
    }
    assert schema["wait_after_days"]["anyOf"][0] == {"maximum": 10, "minimum": 1, "type": "integer"}


def test_values_become_what_the_arguments_are() -> None:
    settings: dict[str, Any] = {
        "speed": 5,
        "rest_hours": 2,
        "stop_minutes": 7.5,
        "wait_after_days": 3,
        "prices": {"x": 2},
        "endings": ["slow", "now"],
        "engines": [{"cylinders": 6}],
        "dry": True,
        "place": "here",
    }
    trip = LongTripSettings.model_validate(settings).for_constructs()
    durations = [trip.rest, trip.stop_timeout, trip.wait_after]
    assert [None if each is None else each.to_seconds() for each in durations] == [7200, 450, 3 * 86400]
    assert (trip.name, trip.speed, trip.prices, trip.is_dry, trip.place) == ("ab", 5, {"x": 2}, True, "here")
    assert trip.endings == (Ending.SLOW, Ending.FAST)
    assert trip.engines == (Engine(cylinders=6),)


def test_what_is_left_out_is_none_and_the_rest_can_be_given() -> None:
    trip = TripSettings().for_constructs(place="there", endings=[Ending.FAST])
    assert (trip.stop_timeout, trip.wait_after, trip.place, trip.endings) == (None, None, "there", [Ending.FAST])


def test_a_call_may_make_the_value() -> None:
    def of_pairs(pairs: Annotated[int, Whole(minimum=1, maximum=6)]) -> Engine:
        return Engine(cylinders=2 * pairs)

    class Pairs(Settings, ModelOf[Engine], maker=of_pairs):
        pairs: int = 2

    assert Pairs().for_constructs() == Engine()
    with pytest.raises(ValidationError):
        Pairs.model_validate({"pairs": 7})


def test_a_setting_without_an_argument_is_refused_at_once() -> None:
    with pytest.raises(TypeError, match=r"^Wrong: no argument for valves; name it, or convert it$"):

        class Wrong(Settings, ModelOf[Engine]):
            cylinders: int = 4
            valves: int = 8


def test_a_model_that_converts_itself_may_have_any_settings() -> None:
    class Pair(Settings, ModelOf[Engine]):
        cylinders: int = 2
        valves: int = 8

        def for_constructs(self, **others: object) -> Engine:
            return Engine(cylinders=self.cylinders * 2, **others)

    class Car(Settings, ModelOf[Trip]):
        name: str = "a"
        place: Pair = Pair()

    assert Car().for_constructs().place == Engine(cylinders=4)
    with pytest.raises(ValidationError):
        Pair.model_validate({"cylinders": 13})
