"""What is said of an argument that is not what its annotation says."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from os import PathLike
from typing import Annotated, Any

import pytest
from aws_cdk import CfnParameter, Duration, Token
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_sns as sns

from cdk_training_cluster import Capacity, IdleSignal, NodeGroup
from cdk_training_cluster.validation.bounds import Minutes, Number, OneOf, Text, Whole
from cdk_training_cluster.validation.kinds import checked
from cdk_training_cluster.validation.rule import SettingsError
from synthesis import new_stack


class Colour(Enum):
    """Two of them."""

    RED = 1
    BLUE = 2


@checked
@dataclass(frozen=True, kw_only=True)
class Settings:
    """One setting of each kind."""

    flag: bool = False
    colour: Colour = Colour.RED
    maybe: Colour | None = None
    whole: int = 0
    number: float = 0
    text: str = ""
    capacity: Capacity | None = None
    topic: sns.ITopic | None = None
    image: ec2.IMachineImage | None = None
    signals: Sequence[IdleSignal] = ()
    files: Sequence[str | PathLike[str]] = ()
    shares: Sequence[Annotated[float, Number(above=0, maximum=1)]] = ()
    sets: tuple[tuple[int, ...], ...] = ()
    variables: Mapping[str, str] | None = None
    prices: Mapping[str, Annotated[float, Number(above=0, maximum=1_000_000)]] | None = None
    percent: Annotated[float, Number(minimum=0.5, maximum=100, known=True)] | None = None
    price: Annotated[float, Number(minimum=0.000001)] = 1
    size: Annotated[int, Whole(minimum=1, maximum=9, advice=": leave it out")] = 1
    window: Annotated[Duration, Minutes(minimum=10, maximum=60, step=5)] | None = None
    metric: Annotated[str, Text("text, such as 'a'", "metricName")] = "m"
    platform: Annotated[str, OneOf(("Linux", "RHEL"), ", since nodes run Linux")] = "Linux"


_TOKEN = Token.as_number({"Ref": "Number"})

WRONG: Sequence[tuple[str, Any, str]] = [
    ("flag", 1, "must be True or False, got 1"),
    ("flag", None, "must be True or False, got None"),
    ("colour", "RED", "must be Colour.RED or Colour.BLUE, got 'RED'"),
    ("colour", None, "must be Colour.RED or Colour.BLUE, got None"),
    ("maybe", 1, "must be Colour.RED or Colour.BLUE, got 1"),
    ("whole", True, "must be a whole number of at most 2147483647, got True"),
    ("whole", 2**31, "must be a whole number of at most 2147483647, got 2147483648"),
    ("number", float("nan"), "must be a number, got nan"),
    ("text", b"x", "must be text, got b'x'"),
    ("capacity", "spot", "must be a Capacity, such as Capacity.on_demand(), got 'spot'"),
    ("topic", "arn", "must be an ITopic, such as sns.Topic.from_topic_arn(…), got 'arn'"),
    (
        "image",
        "ami-1",
        "must be an IMachineImage, such as ec2.MachineImage.generic_linux({'us-east-1': 'ami-0a1b2c3d4e5f67890'}), "
        "got 'ami-1'",
    ),
    ("signals", 5, "must be a list of IdleSignal objects, such as [IdleSignal.network()], got 5"),
    ("signals", [5], "must be a list of IdleSignal objects, such as [IdleSignal.network()], got 5 in it"),
    ("files", "a.sh", "must be a list, each item of it text or a PathLike, got 'a.sh'"),
    ("files", ["a.sh", 5], "must be a list, each item of it text or a PathLike, got 5 in it"),
    ("shares", [0.5, 2], "must be above 0 and at most 1, got 2"),
    ("shares", ["1"], "must be a number above 0 and at most 1, got '1'"),
    ("sets", [[1], 2], "must be a list, each item of it a whole number of at most 2147483647, got 2"),
    ("variables", ["A"], "must be a mapping of text to text, got ['A']"),
    ("prices", [1], "must be a mapping of text to a number, got [1]"),
    ("percent", 0, "must be from 0.5 to 100, got 0"),
    ("price", 0, "must be at least 0.000001, got 0"),
    ("size", 0, "must be at least 1, got 0: leave it out"),
    ("size", 10, "must be at most 9, got 10"),
    ("size", 1.5, "must be a whole number of at least 1, got 1.5: leave it out"),
    ("window", 15, "must be a Duration, such as Duration.minutes(60), got 15"),
    ("window", Duration.minutes(5), "must be from 10 minutes to 1 hour, in steps of 5 minutes, got 5 minutes"),
    ("window", Duration.minutes(11), "must be from 10 minutes to 1 hour, in steps of 5 minutes, got 11 minutes"),
    ("metric", 5, "must be text, such as 'a', got 5"),
    ("metric", "a" * 256, f"must have 1 to 255 characters, got {'a' * 60!r}… (256 characters): shorten it by 1"),
    ("platform", "Windows", "must be Linux or RHEL, since nodes run Linux, got 'Windows'"),
    ("platform", ["Linux"], "must be Linux or RHEL, since nodes run Linux, got ['Linux']"),
]


@pytest.mark.parametrize(("setting", "value", "says"), WRONG)
def test_what_an_annotation_does_not_allow_is_refused(setting: str, value: Any, says: str) -> None:
    with pytest.raises(SettingsError) as refused:
        Settings(**{setting: value})
    assert str(refused.value) == f"{setting} {says}"
    assert [problem.setting for problem in refused.value.problems] == [(setting,)]


def test_a_number_that_has_to_be_known_is_no_token() -> None:
    with pytest.raises(
        SettingsError,
        match=r"^percent must be known when the template is made, got a token, which is known at deployment",
    ):
        Settings(percent=_TOKEN)


def test_each_entry_of_a_mapping_is_named() -> None:
    with pytest.raises(SettingsError) as refused:
        Settings(variables={"A": 1, 5: "b"}, prices={"p5": 0})  # type: ignore[dict-item]
    assert str(refused.value).splitlines() == [
        "variables['A'] must be text, got 1",
        "names of variables must be text, got 5",
        "prices['p5'] must be above 0 and at most 1000000, got 0",
    ]


def test_what_the_annotations_allow_is_taken() -> None:
    stack = new_stack()
    text = CfnParameter(stack, "Text").value_as_string
    Settings(
        flag=True,
        maybe=Colour.BLUE,
        whole=_TOKEN,  # type: ignore[arg-type]
        number=1,
        text=text,
        topic=sns.Topic(stack, "Topic"),
        image=ec2.MachineImage.latest_amazon_linux2023(),
        capacity=Capacity.spot(),
        signals=[IdleSignal.network()],
        files=["a.sh"],
        shares=(0.5, 1),
        sets=[[1, 2], []],  # type: ignore[arg-type]
        variables={"A": text},
        prices={},
        percent=0.5,
        price=_TOKEN,
        size=9,
        window=Duration.minutes(60),
        metric=text,
        platform=text,
    )


def test_a_topic_that_is_imported_is_one() -> None:
    Settings(topic=sns.Topic.from_topic_arn(new_stack(), "T", "arn:aws:sns:us-east-1:111122223333:t"))


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"colr": Colour.RED}, "Settings() has no argument 'colr'; did you mean colour?"),
        ({"q": 1}, "Settings() has no argument 'q'; known here: flag, colour, "),
    ],
)
def test_an_unknown_argument_is_reported_with_its_call_and_the_name_that_is_meant(
    arguments: Mapping[str, Any], said: str
) -> None:
    with pytest.raises(TypeError) as error:
        Settings(**arguments)
    assert str(error.value).startswith(said)


def test_a_missing_argument_is_reported_with_its_call() -> None:
    with pytest.raises(TypeError) as error:
        NodeGroup("workers", count=1)  # type: ignore[call-arg]
    assert str(error.value) == "NodeGroup(): missing a required argument: 'instance_types'"
