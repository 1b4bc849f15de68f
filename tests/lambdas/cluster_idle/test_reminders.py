"""Tags that keep nodes without a clear end never stop one, and a message names them every day."""

import json
from datetime import timedelta

import pytest

from cluster_common.errors import PartialFailureError
from cluster_contract.idle import Policy
from idle_scene import IdleScene, verdicts

KEEP, UNTIL = "cdk-training-cluster:keep", "cdk-training-cluster:keep-until"
SUBJECT = "base-pod: 1 tag keeps nodes without a clear end"


def counted(capsys: pytest.CaptureFixture[str]) -> int:
    """Return what the last run says of such tags."""
    records = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    return next(int(one["IdleUnclearTags"][0]) for one in reversed(records) if "IdleUnclearTags" in one)


@pytest.mark.parametrize("load", [0.0, 90.0])
@pytest.mark.parametrize(
    ("key", "value", "told"),
    [
        (UNTIL, "tomorrow", f"has the tag {UNTIL} with 'tomorrow', which is not a time such as 2026-11-30T18:00Z"),
        (UNTIL, "18:00", f"has the tag {UNTIL} with '18:00', which is not a time such as 2026-11-30T18:00Z"),
        (UNTIL, "", f"has the tag {UNTIL} with '', which is not a time such as 2026-11-30T18:00Z"),
        (UNTIL, "2026-11-30", f"has the tag {UNTIL} with '2026-11-30', which names no time zone: it is kept until"),
        (
            UNTIL,
            "2062-11-30T18:00Z",
            f"has the tag {UNTIL} with '2062-11-30T18:00Z', more than 30 days ahead: the tag",
        ),
        (UNTIL, "2026-W48", f"has the tag {UNTIL} with '2026-W48', which is not a time such as 2026-11-30T18:00Z"),
        (UNTIL, "a\nb", f"has the tag {UNTIL} with 'a\\nb', which is not a time"),
    ],
)
def test_an_unclear_keep_until_keeps_a_node_and_a_message_names_it_every_day(
    key: str, value: str, told: str, load: float, capsys: pytest.CaptureFixture[str]
) -> None:
    scene = IdleScene()
    node = scene.add(load, tags={key: value})

    scene.tick()
    scene.tick(23 * 60)
    assert (scene.subjects(), counted(capsys)) == ([SUBJECT], 1)
    assert scene.texts()[0].startswith(f"Cluster base-pod\n\n{node.id} {told}")
    assert f"--resources {node.id} --tags Key={UNTIL},Value=2026-11-02T20:07:00Z\n" in scene.texts()[0]
    scene.tick(60)
    assert (scene.subjects(), node.state) == ([SUBJECT] * 2, "running")


@pytest.mark.parametrize("value", ["off", "n", "none", "False.", "job 17"])
def test_a_keep_that_is_neither_true_nor_false_keeps_a_node_and_a_message_names_it(
    value: str, capsys: pytest.CaptureFixture[str]
) -> None:
    scene = IdleScene()
    node = scene.add(tags={KEEP: value})

    scene.tick()
    scene.ticks(240)

    assert (scene.subjects(), counted(capsys), node.state) == ([SUBJECT], 1, "running")
    said = f"{node.id} has the tag {KEEP} with {value!r}, which is neither true nor false: it is kept until the tag"
    assert scene.texts()[0].startswith(f"Cluster base-pod\n\n{said} is removed, or corrected.\n")
    assert f"--resources {node.id} --tags Key={KEEP},Value=false\n" in scene.texts()[0]
    node.tags[KEEP] = "false"
    scene.ticks(60)
    assert node.state != "running"


@pytest.mark.parametrize("value", ["true", "Yes", "on", "1"])
def test_a_keep_that_is_clear_is_not_named(value: str) -> None:
    scene = IdleScene()
    scene.add(tags={KEEP: value})

    scene.ticks(120)

    assert scene.subjects() == []


def test_a_tag_on_a_group_is_named_with_the_command_for_the_group() -> None:
    scene = IdleScene()
    scene.add_group(count=2)
    scene.auto_scaling.groups["workers-asg"].tags[UNTIL] = "monday"

    scene.tick()
    assert scene.subjects() == [SUBJECT]
    assert "workers: the Auto Scaling group workers-asg has the tag" in scene.texts()[0]
    assert '"ResourceId":"workers-asg"' in scene.texts()[0]


@pytest.mark.parametrize(
    "tags",
    [
        {KEEP: "true"},
        {KEEP: "true", UNTIL: "2062-11-30T18:00Z"},
        {UNTIL: "2026-11-30T18:00Z"},
        {UNTIL: "2026-11-04"},
        {UNTIL: "2026-10-01"},
        {UNTIL: "2026-11-01T18:00+01:00"},
    ],
    ids=[
        "for ever",
        "for ever, and a time",
        "a clear time",
        "a day soon",
        "a day that is over",
        "a time that is over",
    ],
)
def test_a_clear_keep_until_sends_no_message(tags: dict[str, str]) -> None:
    scene = IdleScene()
    scene.add(90.0, tags=tags)

    scene.ticks(60)
    assert scene.subjects() == []


def test_a_policy_that_is_off_needs_no_tags() -> None:
    scene = IdleScene(policy=Policy(off=True))
    scene.add(tags={UNTIL: "tomorrow"})

    assert (scene.ticks(60) and scene.subjects()) == []


def test_a_reminder_that_could_not_be_sent_is_sent_in_the_next_run() -> None:
    scene = IdleScene()
    scene.add(tags={UNTIL: "tomorrow"})
    scene.sns.fails = True
    with pytest.raises(PartialFailureError, match="the notification could not be published"):
        scene.tick()
    scene.sns.fails = False

    scene.tick()
    assert scene.subjects() == [SUBJECT]


def test_a_tag_that_one_run_could_not_read_is_not_named_twice_a_day_and_its_item_goes_after_it() -> None:
    scene = IdleScene()
    scene.add_group(count=1)
    tags = scene.auto_scaling.groups["workers-asg"].tags
    tags[UNTIL] = "tomorrow"
    scene.tick()
    scene.auto_scaling.fail_next("DescribeAutoScalingGroups", "Throttling")
    with pytest.raises(PartialFailureError, match="the Auto Scaling groups: could not be read"):
        scene.tick()

    scene.ticks(60)
    assert (scene.subjects(), len(scene.dynamodb.items)) == ([SUBJECT], 1)
    tags[UNTIL] = "2026-11-04T18:00Z"
    scene.tick(24 * 60)
    assert scene.dynamodb.items == {}


def test_a_date_keeps_until_it_is_over_everywhere_and_then_no_longer() -> None:
    scene = IdleScene()
    node = scene.add(tags={UNTIL: "2026-11-02"})
    scene.pass_time(timedelta(hours=27))

    assert (verdicts(scene.run()), node.state) == (["keep"], "running")
    assert verdicts(scene.ticks(60)) == ["warn"]
