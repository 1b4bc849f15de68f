"""The synthesized policy of the idle function, for a cluster as a test has it."""

from collections.abc import Mapping
from typing import Any

from aws_cdk import aws_sns as sns
from aws_cdk.assertions import Template

from cdk_training_cluster import ClusterPower, DatasetHydration, IdlePolicy, IdleStop
from cdk_training_cluster.guardrails import IdleGroup
from cdk_training_cluster.guardrails.power import PowerGroup
from fake_dynamodb import TABLE
from hydrated_files import hydrated_file_system
from policy_evaluator import role_statements
from synthesis import new_stack

FAILED_EVENTS = "arn:aws:sqs:us-east-1:111122223333:failed-events"
"""The ARN of the functions' queues."""


def idle_statements(
    cluster: str,
    groups: Mapping[str, IdleGroup],
    *,
    topic: str,
    power: str,
    logs: str = "",
    account: str,
    table: str = TABLE,
    policy: IdlePolicy | None = None,
    preloads: bool = False,
) -> list[dict[str, Any]]:
    """Return the statements of the function's role.

    Args:
        cluster: The cluster's name.
        groups: Its node groups.
        topic: The ARN of the topic.
        power: The name of the power function.
        logs: The ARN of the function's log group.
        account: The account.
        table: The name of the state table.
        policy: The cluster's policy.
        preloads: Whether its nodes restore a data set.
    """
    stack = new_stack()
    alerts = sns.Topic(stack, "Alerts")
    owner = (
        ClusterPower(
            stack,
            "Power",
            cluster_name=cluster,
            groups={name: PowerGroup(count=2, spot_fleet_id=group.spot_fleet_id) for name, group in groups.items()},
            alert_topic=alerts,
        )
        if groups
        else None
    )
    files = hydrated_file_system(stack) if preloads else None
    IdleStop(
        stack,
        "Idle",
        cluster_name=cluster,
        alert_topic=alerts,
        policy=policy,
        node_groups=groups,
        power=owner,
        hydration=None
        if files is None
        else DatasetHydration(stack, "Hydration", cluster_name=cluster, alert_topic=alerts, file_system=files),
    )
    template = Template.from_stack(stack).to_json()
    (idle,) = _functions(template, "cluster_idle")
    values = {
        "AWS::Partition": "aws",
        "AWS::Region": "us-east-1",
        "AWS::AccountId": account,
        **{name: topic for name, resource in template["Resources"].items() if resource["Type"] == "AWS::SNS::Topic"},
        **{
            name: f"arn:aws:lambda:us-east-1:{account}:function:{power}:{resource['Properties']['Name']}"
            for name, resource in template["Resources"].items()
            if resource["Type"] == "AWS::Lambda::Alias"
        },
        **{
            f"{name}.Arn": f"{logs}:*"
            for name, resource in template["Resources"].items()
            if resource["Type"] == "AWS::Logs::LogGroup"
        },
        **{
            f"{name}.Arn": FAILED_EVENTS
            for name, resource in template["Resources"].items()
            if resource["Type"] == "AWS::SQS::Queue"
        },
        **{
            f"{name}.Arn": f"arn:aws:dynamodb:us-east-1:{account}:table/{table}"
            for name, resource in template["Resources"].items()
            if resource["Type"] == "AWS::DynamoDB::Table"
        },
    }
    role = template["Resources"][idle]["Properties"]["Role"]["Fn::GetAtt"][0]
    return role_statements(template, role, values)


def _functions(template: Mapping[str, Any], package: str) -> list[str]:
    return [
        name
        for name, resource in template["Resources"].items()
        if resource["Type"] == "AWS::Lambda::Function" and resource["Properties"]["Handler"].startswith(f"{package}.")
    ]
