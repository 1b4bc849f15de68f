"""The messages, word for word."""

import json
import re
import shlex
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from cluster_common.owners.kinds import AUTO_SCALING_GROUP, SPOT_FLEET
from cluster_common.tags import tag_value
from cluster_contract.owners import OwnerSettings
from cluster_idle.instances import Instance, Owner
from cluster_idle.messages import note, stopped_message, warning_message
from cluster_idle.verdicts import Unit
from idle_function_settings import Group, idle_settings

NOW = datetime(2026, 11, 2, 8, 7, tzinfo=UTC)
SETTINGS = idle_settings(
    cluster="base-pod",
    region="us-east-1",
    power_function="base-pod-power",
    groups={
        "workers": Group(),
        "held": Group(release=True),
        "extras": Group(owner=OwnerSettings.spot_fleet("sfr-1")),
    },
)

GROUP = Owner.of(AUTO_SCALING_GROUP, "workers-asg")
FLEET = Owner.of(SPOT_FLEET, "sfr-1")


def node(id: str, owner: Owner | None = None, **settings: object) -> Instance:
    plain = Instance(
        id=id,
        instance_type="p5.48xlarge",
        launched=NOW - timedelta(days=1),
        owner=owner or Owner.itself(id),
    )
    return replace(plain, **settings)  # type: ignore[arg-type]  # what a test sets


def unit(*instances: Instance, name: str = "", targets: Sequence[Owner] = (), dry_run: bool = False) -> Unit:
    return Unit(
        name=name or instances[0].id,
        instances=instances,
        targets=tuple(targets) or tuple(sorted({one.owner for one in instances})),
        idle_since=datetime(2026, 11, 2, 6, 30, tzinfo=UTC),
        idle_description="below 5 % for 60 minutes",
        stop_at=datetime(2026, 11, 2, 8, 37, tzinfo=UTC),
        dry_run=dry_run,
    )


def gang(count: int = 2, owner: Owner = GROUP, name: str = "workers", **settings: object) -> Unit:
    return unit(
        *(node(f"i-{number}", owner, node_group=name, **settings) for number in range(1, count + 1)), name=name
    )


ALONE = unit(node("i-1"))
HIBERNATES = unit(node("i-1", hibernates=True))
OF_FLEET = gang(owner=FLEET, name="extras", spot_request="sir-1")
OF_GROUP = unit(node("i-1", GROUP, node_group="workers"), targets=[Owner.itself("i-1")])

IS_IDLE = "utilization below 5 % for 60 minutes, idle since 2026-11-02T06:30:00Z"
KEEP = (
    "\n  Work on it also prevents the stop, but CPU and network metrics arrive up to 15 minutes late: set the tag "
    "if the stop is nearer.\n  The tag cdk-training-cluster:keep = true keeps it without an end."
)
BY_TAG = (
    "  To keep it: aws ec2 create-tags --region us-east-1 --resources {ids} --tags "
    "Key=cdk-training-cluster:keep-until,Value=2026-11-02T20:37:00Z" + KEEP
)
BY_GROUP = (
    "  To keep it: aws autoscaling create-or-update-tags --region us-east-1 --tags "
    '\'[{"ResourceId":"workers-asg","ResourceType":"auto-scaling-group","Key":"cdk-training-cluster:keep-until",'
    '"Value":"2026-11-02T20:37:00Z","PropagateAtLaunch":false}]\'' + KEEP
)

OF_INSTANCE_MEANS = (
    "EBS volumes stay, and are billed; data on instance store is lost; the capacity goes back to EC2, so a later "
    "start may fail for want of capacity."
)
OF_GROUP_MEANS = (
    "The Auto Scaling group workers-asg is scaled to zero; data on the nodes' disks is lost, except on nodes that "
    "return to a warm pool; their capacity goes back to EC2, so a later start may have to wait for capacity."
)
START = "  To start it again: training-cluster start base-pod --node-group workers --region us-east-1"


@pytest.mark.parametrize(
    ("of", "subject", "text"),
    [
        (
            ALONE,
            "base-pod: 1 node idle, stopped in 30 minutes",
            f"i-1 (p5.48xlarge): {IS_IDLE}; $55.04 an hour.\n"
            f"  Will be stopped at 2026-11-02T08:37:00Z. {OF_INSTANCE_MEANS}\n" + BY_TAG.format(ids="i-1"),
        ),
        (
            HIBERNATES,
            "base-pod: 1 node idle, hibernated in 30 minutes",
            f"i-1 (p5.48xlarge): {IS_IDLE}; $55.04 an hour.\n"
            "  Will be hibernated at 2026-11-02T08:37:00Z. The memory is kept on the root volume. "
            f"{OF_INSTANCE_MEANS}\n" + BY_TAG.format(ids="i-1"),
        ),
        (
            gang(),
            "base-pod: 2 nodes idle, terminated in 30 minutes",
            f"workers (2 p5.48xlarge: i-1, i-2): {IS_IDLE}; $110.08 an hour.\n"
            f"  Will be terminated at 2026-11-02T08:37:00Z. {OF_GROUP_MEANS}\n" + BY_GROUP,
        ),
        (
            OF_FLEET,
            "base-pod: 2 nodes idle, terminated in 30 minutes",
            # Spot has no price that stays.
            f"extras (2 p5.48xlarge: i-1, i-2): {IS_IDLE}.\n"
            "  Will be terminated at 2026-11-02T08:37:00Z. The Spot Fleet request sfr-1 gets the target capacity 0; "
            "data on the nodes' disks is lost; their capacity goes back to EC2, so a later start may have to wait "
            "for "
            "capacity.\n" + BY_TAG.format(ids="sfr-1"),
        ),
        (
            OF_GROUP,
            "base-pod: 1 node idle, terminated in 30 minutes",
            f"i-1 (p5.48xlarge of workers): {IS_IDLE}; $55.04 an hour.\n"
            "  Will be terminated at 2026-11-02T08:37:00Z. The Auto Scaling group workers-asg gets smaller by one "
            "node; "
            "data on the node's disks is lost.\n" + BY_TAG.format(ids="i-1"),
        ),
        (
            unit(node("i-1", instance_type="x9.large")),
            "base-pod: 1 node idle, stopped in 30 minutes",
            f"i-1 (x9.large): {IS_IDLE}.\n"
            f"  Will be stopped at 2026-11-02T08:37:00Z. {OF_INSTANCE_MEANS}\n" + BY_TAG.format(ids="i-1"),
        ),
    ],
    ids=["instance", "hibernates", "group", "fleet", "node-of-group", "unknown-price"],
)
def test_a_warning_says_what_when_why_what_it_means_and_how_to_keep_it(of: Unit, subject: str, text: str) -> None:
    assert warning_message(SETTINGS, [of], NOW) == (subject, f"Cluster base-pod\n\n{text}")


@pytest.mark.parametrize("name", ["a'; curl x | sh; '", 'a" $(reboot) "', "a,Key=b\\", "a\nb"])
def test_what_people_paste_holds_a_name_as_one_argument_whatever_it_is(name: str) -> None:
    named = gang(owner=replace(GROUP, id=name))
    _, text = warning_message(SETTINGS, [named], NOW)
    (command,) = re.findall(r"To keep it: (aws .*)", text)
    words = shlex.split(command)

    assert words[:5] == ["aws", "autoscaling", "create-or-update-tags", "--region", "us-east-1"]
    assert [one["ResourceId"] for one in json.loads(words[6])] == [name]
    assert len(words) == 7


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("dev\n\nPay 5 BTC", "dev\\n\\nPay 5 BTC"),
        ("\x1b[2Jdev\u202e", "\\x1b[2Jdev\\u202e"),
        ("x" * 200, "x" * 97 + "..."),
    ],
)
def test_a_name_that_is_a_tag_cannot_forge_a_message(name: str, told: str) -> None:
    named = unit(node("i-1", node_group=name), node("i-2", node_group=name), name=name)
    _, text = warning_message(SETTINGS, [named], NOW)

    assert text.splitlines()[2].startswith(f"{told} (2 p5.48xlarge: i-1, i-2): ")


def test_one_warning_names_all() -> None:
    subject, text = warning_message(SETTINGS, [ALONE, gang()], NOW + timedelta(minutes=29))

    assert subject == "base-pod: 3 nodes idle, stopped or terminated in 1 minute"
    assert [line.partition(" ")[0] for line in text.split("\n\n")] == ["Cluster", "i-1", "workers"]


@pytest.mark.parametrize(
    ("of", "would"),
    [(ALONE, "Would be stopped"), (HIBERNATES, "Would be hibernated"), (gang(), "Would be terminated")],
)
def test_a_dry_run_is_seen_in_every_message(of: Unit, would: str) -> None:
    of = replace(of, dry_run=True)
    told, text = warning_message(SETTINGS, [of], NOW)
    done, after = stopped_message(SETTINGS, [of], frozenset())

    assert told.startswith("[dry run] base-pod: ")
    assert done.startswith("[dry run] base-pod: ")
    assert done.endswith(f"{would.lower()} now: idle")
    for message in (text, after):
        assert message.startswith("Cluster base-pod\n\nThis is a dry run: nothing is stopped.\n\n")
    assert f"  {would} at 2026-11-02T08:37:00Z. " in text
    assert "start it again" not in after
    assert "saves" not in after


def test_where_only_some_of_it_is_a_dry_run_it_says_which() -> None:
    subject, text = warning_message(SETTINGS, [ALONE, replace(gang(), dry_run=True)], NOW)

    assert subject == "base-pod: 1 node idle, stopped in 30 minutes"
    assert text.startswith("Cluster base-pod\n\nThis is a dry run of workers: nothing is stopped.\n\n")
    assert "  Will be stopped at " in text
    assert "  Would be terminated at " in text


@pytest.mark.parametrize(
    ("of", "subject", "text"),
    [
        (
            ALONE,
            "base-pod: 1 node stopped: idle",
            f"i-1 (p5.48xlarge): {IS_IDLE}.\n"
            f"  {OF_INSTANCE_MEANS}\n"
            "  To start it again: aws ec2 start-instances --region us-east-1 --instance-ids i-1\n\n"
            "That saves $55.04 an hour, at the On-Demand price.",
        ),
        (
            gang(),
            "base-pod: 2 nodes terminated: idle",
            f"workers (2 p5.48xlarge: i-1, i-2): {IS_IDLE}.\n"
            f"  {OF_GROUP_MEANS}\n{START}\n\nThat saves $110.08 an hour, at the On-Demand price.",
        ),
        (
            OF_GROUP,
            "base-pod: 1 node terminated: idle",
            f"i-1 (p5.48xlarge of workers): {IS_IDLE}.\n"
            "  The Auto Scaling group workers-asg gets smaller by one node; data on the node's disks is lost.\n"
            f"{START}\n\nThat saves $55.04 an hour, at the On-Demand price.",
        ),
    ],
    ids=["instance", "group", "node-of-group"],
)
def test_a_stop_is_reported_with_the_command_that_starts_it_again(of: Unit, subject: str, text: str) -> None:
    assert stopped_message(SETTINGS, [of], frozenset(of.ids)) == (subject, f"Cluster base-pod\n\n{text}")


def test_only_those_that_were_stopped_are_reported() -> None:
    some = unit(*(node(f"i-{number}", node_group="dev") for number in (1, 2, 3)), name="dev")

    subject, text = stopped_message(SETTINGS, [some], frozenset({"i-1", "i-3"}))

    assert subject == "base-pod: 2 nodes stopped: idle"
    assert "dev (2 p5.48xlarge: i-1, i-3): " in text
    assert "That saves $110.08 an hour" in text


def test_those_that_wait_for_a_later_run_are_counted() -> None:
    settings = replace(SETTINGS, max_stops=2)

    _, text = stopped_message(settings, [gang()], frozenset({"i-1", "i-2"}), 7)

    assert text.endswith(
        "\n\n7 more are due and wait for a later run: one run stops at most 2, the longest idle first."
    )


@pytest.mark.parametrize(
    ("of", "saves"),
    [
        (gang(), "$110.08"),
        (OF_FLEET, None),
        (gang(reserved="the capacity reservation cr-1"), None),
        # Its reservation is lowered with it.
        (gang(name="held", reserved="the capacity reservation cr-1"), "$110.08"),
        (gang(instance_type="x9.large"), None),
    ],
)
def test_what_a_stop_saves_is_not_more_than_is_known(of: Unit, saves: str | None) -> None:
    _, text = stopped_message(SETTINGS, [of], frozenset(of.ids))

    assert text.endswith(f"That saves {saves} an hour, at the On-Demand price.") == (saves is not None)
    assert ("saves" in text) == (saves is not None)


def test_what_the_settings_know_of_prices_goes_before() -> None:
    _, text = warning_message(replace(SETTINGS, prices={"p5.48xlarge": 1234.5}), [gang()], NOW)

    assert "; $2,469.00 an hour." in text


def test_many_units_are_cut() -> None:
    units = [unit(node(f"i-{number:017x}")) for number in range(250)]

    for subject, text in (
        warning_message(SETTINGS, units, NOW),
        stopped_message(SETTINGS, units, frozenset(one.name for one in units)),
    ):
        assert subject.startswith("base-pod: 250 nodes ")
        assert text.count(" (p5.48xlarge): ") == 100
        assert text.endswith("\n\nAnd 150 more: the idle function's log lists all of them.")


@pytest.mark.parametrize(
    "units",
    [[unit(node(f"i-{number:017x}"), dry_run=dry) for number in range(10_000)] for dry in (False, True)]
    + [
        [unit(*(node(f"i-{number:017x}", GROUP, node_group="workers") for number in range(10_000)), name="workers")],
        # Nothing owns them, so each carries the warning; three such groups are not too many either.
        [
            unit(*(node(f"i-{number:017x}", node_group=name) for number in range(10_000)), name=name)
            for name in ("a", "b", "c")
        ],
    ],
    ids=["alone", "dry-run", "group", "ownerless-groups"],
)
def test_ten_thousand_nodes_fit_into_a_message(units: list[Unit]) -> None:
    stopped = frozenset() if units[0].dry_run else frozenset(one for each in units for one in each.ids)

    for subject, text in (
        warning_message(SETTINGS, units, NOW),
        stopped_message(SETTINGS, units, stopped, 10_000),
    ):
        assert len(subject) < 100
        assert len(text.encode()) < 256 * 1024


@pytest.mark.parametrize("cluster", ["c" * 200, "clüster-\N{GREEK SMALL LETTER MU}"])
def test_a_subject_is_what_sns_takes(cluster: str) -> None:
    subject, _ = warning_message(replace(SETTINGS, cluster=cluster), [ALONE], NOW)

    assert len(subject) < 100
    assert subject.isascii()


@pytest.mark.parametrize(
    ("of", "text"),
    [
        (
            ALONE,
            "idle since 2026-11-02T06:30:00Z - stopped at 2026-11-02T08:37:00Z unless it works - to keep it add the "
            "tag cdk-training-cluster:keep-until = a time",
        ),
        (
            gang(),
            "idle since 2026-11-02T06:30:00Z - terminated at 2026-11-02T08:37:00Z unless it works - to keep it add "
            "the tag cdk-training-cluster:keep-until = a time",
        ),
        (
            replace(HIBERNATES, dry_run=True),
            "dry run - idle since 2026-11-02T06:30:00Z - would be hibernated at 2026-11-02T08:37:00Z unless it works "
            "- to keep it add the tag cdk-training-cluster:keep-until = a time",
        ),
    ],
)
def test_the_note_on_an_owner_fits_a_tag_as_it_is(of: Unit, text: str) -> None:
    assert note(SETTINGS, of) == text
    assert tag_value(text) == text
