"""What the construct writes is what the function reads, and the other way round."""

from datetime import timedelta
from typing import Any

from aws_cdk import CfnResource, Duration
from aws_cdk import aws_sns as sns
from hypothesis import given, settings
from hypothesis import strategies as st

from cdk_training_cluster.guardrails.power import ClusterPower, PowerGroup
from cluster_contract.owners import OwnerSettings
from cluster_contract.power import PowerFunctionSettings, PowerGroupSettings
from fake_dynamodb import TABLE
from fake_service import STACK
from policy_evaluator import resolve
from power_scene import TOPIC
from synthesis import new_stack, only, resources

names = st.text("abcdefghijklmnopqrstuvwxyz-0123456789", min_size=1, max_size=20)


def environment(
    groups: dict[str, PowerGroup], grace: Duration | None = None, notice: Duration | None = None
) -> dict[str, str]:
    """Return the function's environment as it is deployed, with the topic's ARN put in."""
    stack = new_stack()
    topic = sns.Topic(stack, "Alerts")
    ClusterPower(
        stack,
        "Power",
        cluster_name="base-pod",
        groups=groups,
        alert_topic=topic,
        launch_grace=grace,
        closing_notice=notice,
    )
    variables: dict[str, Any] = only(stack, "AWS::Lambda::Function")["Properties"]["Environment"]["Variables"]
    assert variables.pop("ALERT_TOPIC_ARN") == stack.resolve(topic.topic_arn)
    [table] = resources(stack, "AWS::DynamoDB::Table")
    assert variables.pop("STATE_TABLE") == {"Ref": table}
    assert variables.pop("STACK_ID") == {"Ref": "AWS::StackId"}
    return {**variables, "ALERT_TOPIC_ARN": TOPIC, "STATE_TABLE": TABLE, "STACK_ID": STACK}


ids = st.text("0123456789abcdef", min_size=8, max_size=17)
power_groups = st.one_of(
    st.builds(PowerGroup, count=st.integers(1, 1000)),
    st.builds(
        PowerGroup,
        count=st.integers(1, 64),
        capacity_block=ids.map("cr-{}".format),
        block_ends_early_minutes=st.sampled_from((30, 60)),
    ),
    st.builds(PowerGroup, count=st.integers(1, 100), spot_fleet_id=ids.map("sfr-{}".format)),
    st.builds(
        PowerGroup,
        count=st.integers(1, 64),
        capacity_blocks=st.lists(ids.map("cr-{}".format), min_size=1, max_size=3),
        listed_reservations=st.lists(ids.map("cr-{}".format), max_size=2),
        on_demand=st.booleans(),
    ),
    st.builds(
        PowerGroup,
        count=st.integers(1, 100),
        capacity_reservation_id=ids.map("cr-{}".format),
        released=st.booleans(),
    ),
)


@given(st.dictionaries(names, power_groups, min_size=1, max_size=5))
@settings(deadline=None, max_examples=10)
def test_the_function_reads_the_settings_that_the_construct_writes(groups: dict[str, PowerGroup]) -> None:
    assert PowerFunctionSettings.from_environment(environment(groups)) == PowerFunctionSettings(
        cluster="base-pod",
        groups={
            name: PowerGroupSettings(
                count=group.count,
                block=group.capacity_block,
                blocks=tuple(group.capacity_blocks),
                listed=tuple(group.listed_reservations),
                on_demand=group.on_demand or not group.capacity_blocks,
                block_ends_early=timedelta(minutes=group.block_ends_early_minutes if group.capacity_block else 30),
                owner=group.owner_settings,
                reservation=None if group.released else group.capacity_reservation_id,
                released=group.capacity_reservation_id if group.released else None,
            )
            for name, group in groups.items()
        },
        launch_grace=timedelta(minutes=10),
        topic_arn=TOPIC,
        state_table=TABLE,
        stack_id=STACK,
    )


def test_times_reach_the_function() -> None:
    written = environment({"workers": PowerGroup(count=8)}, Duration.minutes(25), Duration.hours(1))

    assert PowerFunctionSettings.from_environment(written).launch_grace == timedelta(minutes=25)
    assert PowerFunctionSettings.from_environment(written).closing_notice == timedelta(hours=1)
    assert written["CLUSTER_POWER_SETTINGS"] == (
        '{"closing_notice":3600,"cluster":"base-pod","groups":{"workers":{"count":8}},"launch_grace":1500}'
    )


def test_an_id_that_is_known_at_deployment_only_reaches_the_function() -> None:
    """The settings are one text then, which CloudFormation puts together."""
    stack = new_stack()
    topic = sns.Topic(stack, "Alerts")
    stand_in = CfnResource(stack, "Fleet", type="AWS::EC2::SpotFleet")
    ClusterPower(
        stack,
        "Power",
        cluster_name="base-pod",
        groups={"extras": PowerGroup(count=4, spot_fleet_id=stand_in.ref)},
        alert_topic=topic,
    )

    variables = only(stack, "AWS::Lambda::Function")["Properties"]["Environment"]["Variables"]
    text = resolve(variables["CLUSTER_POWER_SETTINGS"], {"Fleet": "sfr-73fbd2ce-aa30-494c-8788-1cee4EXAMPLE"})

    [group] = PowerFunctionSettings.from_environment({"CLUSTER_POWER_SETTINGS": text}).groups.values()
    assert group == PowerGroupSettings(
        count=4, owner=OwnerSettings.spot_fleet("sfr-73fbd2ce-aa30-494c-8788-1cee4EXAMPLE")
    )
