"""What `make live` asks about reports: may a node send only events that name its own session as their sender?"""

import boto3
from aws_cdk import Stack
from aws_cdk import aws_iam as iam
from botocore.exceptions import ClientError

from cdk_training_cluster.guardrails.health.health_permissions import let_nodes_report
from cluster_contract.health import REPORT_DETAIL_TYPE, report_source
from rehearsal.readback import Client, stack_resources

REPORTS = "reports"
"""The question's short name."""

REPORTS_ASKS = "May a node's role send only events whose source holds its own aws:userid?"

# Sessions of an instance's role are called like instances.
_OWN, _OTHER = "i-0a1b2c3d4e5f67890", "i-00000000000000000"


def make_reporting_role(stack: Stack, cluster: str) -> None:
    """Make a role that may report as a node's does, and that the account may assume.

    Args:
        stack: The question's stack.
        cluster: The cluster's name.
    """
    role = iam.Role(stack, "Role", assumed_by=iam.AccountPrincipal(stack.account))
    let_nodes_report(role, cluster)


def what_may_be_reported(client: Client, stack: str, cluster: str, region: str) -> list[str]:
    """Send an event for each sender, and say what became of it, a sentence each.

    Args:
        client: Makes clients.
        stack: The stack's name.
        cluster: The cluster's name.
        region: The region.
    """
    (role,) = (one for one in stack_resources(client, stack) if one["ResourceType"] == "AWS::IAM::Role")
    arn = client("iam").get_role(RoleName=role["PhysicalResourceId"])["Role"]["Arn"]
    given = client("sts").assume_role(RoleArn=arn, RoleSessionName=_OWN)
    role_id = given["AssumedRoleUser"]["AssumedRoleId"].partition(":")[0]
    keys = given["Credentials"]
    events = boto3.client(
        "events",
        region_name=region,
        endpoint_url=client("events").meta.endpoint_url,
        aws_access_key_id=keys["AccessKeyId"],
        aws_secret_access_key=keys["SecretAccessKey"],
        aws_session_token=keys["SessionToken"],
    )
    found = []
    senders = {"its own": (cluster, _OWN), "another node's": (cluster, _OTHER), "another cluster's": ("other", _OWN)}
    for whose, (named, session) in senders.items():
        source = report_source(named, f"{role_id}:{session}")
        entry = {"Source": source, "DetailType": REPORT_DETAIL_TYPE, "Detail": "{}"}
        try:
            (answer,) = events.put_events(Entries=[entry])["Entries"]
            said = "is refused" if answer.get("ErrorCode") else "is taken"
        except ClientError as error:
            denied = error.response["Error"]["Code"] == "AccessDeniedException"
            said = "is refused" if denied else f"ends with {error}"
        found.append(f"an event with {whose} source {said}")
    return found
