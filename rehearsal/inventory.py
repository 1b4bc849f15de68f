"""What there is in the account, id by id and with its contents, so that before and after can be compared."""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from botocore.exceptions import ClientError

from rehearsal.readback import Client

Inventory = Mapping[str, Mapping[str, Any]]
"""Contents by id, by kind (one of `KINDS`)."""

_TOOLKIT = "CDKToolkit"


@dataclass(frozen=True)
class _Listed:
    """How things of one kind are asked for.

    Attributes:
        kind: What they are.
        service: The service's name in boto3.
        operation: The operation that describes them.
        key: Where its answer has them, as JMESPath.
        id: The part of a description that is the id.
        passing: The parts that change while the thing stays the same.
    """

    kind: str
    service: str
    operation: str
    key: str
    id: str
    passing: tuple[str, ...] = ()


_LISTED = (
    _Listed("file systems", "fsx", "describe_file_systems", "FileSystems[]", "FileSystemId"),
    _Listed("VPCs", "ec2", "describe_vpcs", "Vpcs[]", "VpcId"),
    _Listed("subnets", "ec2", "describe_subnets", "Subnets[]", "SubnetId", ("AvailableIpAddressCount",)),
    _Listed("route tables", "ec2", "describe_route_tables", "RouteTables[]", "RouteTableId"),
    _Listed("internet gateways", "ec2", "describe_internet_gateways", "InternetGateways[]", "InternetGatewayId"),
    _Listed("endpoints", "ec2", "describe_vpc_endpoints", "VpcEndpoints[?State!='deleted']", "VpcEndpointId"),
    _Listed("security groups", "ec2", "describe_security_groups", "SecurityGroups[]", "GroupId"),
    _Listed("log groups", "logs", "describe_log_groups", "logGroups[]", "logGroupName", ("storedBytes",)),
    _Listed("flow logs", "ec2", "describe_flow_logs", "FlowLogs[]", "FlowLogId"),
    _Listed(
        "NAT gateways",
        "ec2",
        "describe_nat_gateways",
        "NatGateways[?State!='deleted' && State!='deleting']",
        "NatGatewayId",
    ),
    _Listed("addresses", "ec2", "describe_addresses", "Addresses[]", "AllocationId"),
    _Listed(
        "nodes",
        "ec2",
        "describe_instances",
        "Reservations[].Instances[] | [?State.Name!='terminated' && State.Name!='shutting-down']",
        "InstanceId",
    ),
    _Listed("volumes", "ec2", "describe_volumes", "Volumes[]", "VolumeId"),
    _Listed(
        "Auto Scaling groups",
        "autoscaling",
        "describe_auto_scaling_groups",
        "AutoScalingGroups[]",
        "AutoScalingGroupName",
    ),
    _Listed("launch templates", "ec2", "describe_launch_templates", "LaunchTemplates[]", "LaunchTemplateId"),
    _Listed("placement groups", "ec2", "describe_placement_groups", "PlacementGroups[]", "GroupId"),
    _Listed(
        "capacity reservations",
        "ec2",
        "describe_capacity_reservations",
        "CapacityReservations[?State!='cancelled' && State!='expired']",
        "CapacityReservationId",
    ),
    _Listed("reservation groups", "resource-groups", "list_groups", "GroupIdentifiers[]", "GroupArn"),
    _Listed(
        "Spot Fleets",
        "ec2",
        "describe_spot_fleet_requests",
        "SpotFleetRequestConfigs[?!starts_with(SpotFleetRequestState, 'cancelled')]",
        "SpotFleetRequestId",
    ),
    _Listed("event rules", "events", "list_rules", "Rules[]", "Name"),
    _Listed("functions", "lambda", "list_functions", "Functions[]", "FunctionName"),
    _Listed("topics", "sns", "list_topics", "Topics[]", "TopicArn"),
)

_TABLES = "state tables"
# What a function writes changes them.
_PASSING_OF_TABLES = ("ItemCount", "TableSizeBytes")
_BUDGETS = "AWS budgets"
_PASSING_OF_BUDGETS = ("CalculatedSpend", "LastUpdatedTime")

KINDS = (*(listed.kind for listed in _LISTED), _TABLES, _BUDGETS, "buckets")


def take_inventory(client: Client) -> Inventory:
    """Describe everything in the account that a cluster is made of, but CDK's own bucket.

    Args:
        client: Makes clients of the local AWS.
    """
    found = {kind: look() for kind, look in looks(client).items()}
    return {**found, _BUDGETS: _budgets(client), "buckets": _buckets(client)}


def looks(client: Client) -> Mapping[str, Callable[[], Mapping[str, Any]]]:
    """Return what describes the things of each kind, so that one that fails hides no other.

    Left out are buckets, whose contents an account may have very many of, and AWS budgets, which credentials without
    access to billing cannot list.

    Args:
        client: Makes clients.
    """
    return {
        **{listed.kind: partial(_listed, client, listed) for listed in _LISTED},
        _TABLES: partial(_tables, client),
    }


def _listed(client: Client, listed: _Listed) -> dict[str, Any]:
    service = client(listed.service)
    # Where there is no paginator, one page holds what a rehearsal makes.
    found = (
        service.get_paginator(listed.operation).paginate().search(listed.key)
        if service.can_paginate(listed.operation)
        else _search(getattr(service, listed.operation), listed.key)
    )
    return {
        entry[listed.id]: _plain({key: value for key, value in entry.items() if key not in listed.passing})
        for entry in found
    }


def _tables(client: Client) -> dict[str, Any]:
    dynamodb = client("dynamodb")
    names = dynamodb.get_paginator("list_tables").paginate().search("TableNames[]")
    found = {name: dynamodb.describe_table(TableName=name)["Table"] for name in names}
    return {
        name: _plain({key: value for key, value in table.items() if key not in _PASSING_OF_TABLES})
        for name, table in found.items()
    }


def _budgets(client: Client) -> dict[str, Any]:
    account = client("sts").get_caller_identity()["Account"]
    found = client("budgets").get_paginator("describe_budgets").paginate(AccountId=account).search("Budgets[]")
    return {
        budget["BudgetName"]: _plain({key: value for key, value in budget.items() if key not in _PASSING_OF_BUDGETS})
        for budget in found
        if budget is not None
    }


def _search(operation: Callable[[], Any], key: str) -> Any:
    return operation()[key.removesuffix("[]")]


def _buckets(client: Client) -> dict[str, Any]:
    s3 = client("s3")
    own = _toolkit_bucket(client)
    names = [bucket["Name"] for bucket in s3.list_buckets()["Buckets"] if bucket["Name"] != own]
    # S3 puts logs of what a rehearsal itself asks for into the bucket that another one names.
    logging = [s3.get_bucket_logging(Bucket=name).get("LoggingEnabled", {}).get("TargetBucket") for name in names]
    return {
        name: {"objects": {} if name in logging else _objects(s3, name), "policy": _policy(s3, name)}
        for name in names
    }


def _toolkit_bucket(client: Client) -> str | None:
    """Name the bucket that `cdk bootstrap` makes for assets, from the stack that it makes it with."""
    stacks = client("cloudformation").get_paginator("describe_stacks").paginate()
    query = f"Stacks[?StackName=='{_TOOLKIT}'].Outputs[] | [?OutputKey=='BucketName'].OutputValue"
    return next((str(name) for name in stacks.search(query)), None)


def _objects(s3: Any, bucket: str) -> dict[str, str]:
    pages = s3.get_paginator("list_objects_v2").paginate(Bucket=bucket)
    return {entry["Key"]: entry["ETag"] for entry in pages.search("Contents[]") if entry is not None}


def _policy(s3: Any, bucket: str) -> Any:
    try:
        return json.loads(s3.get_bucket_policy(Bucket=bucket)["Policy"])
    except ClientError as error:
        if error.response["Error"]["Code"] != "NoSuchBucketPolicy":
            raise
        return None


def _plain(value: Any) -> Any:
    """Return a description as JSON has it: comparable, and fit for a file."""
    return json.loads(json.dumps(value, default=str, sort_keys=True))
