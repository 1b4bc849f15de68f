"""What the services say of the resources of stacks, in a form that two accounts can be compared in."""

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import jmespath  # type: ignore[import-untyped]
from botocore.exceptions import ClientError

from rehearsal.readback import Client, stack_resources

Facts = Mapping[str, Any]
"""What was said, by the resource's logical id and type."""


@dataclass(frozen=True)
class _Reader:
    service: str
    operation: str
    asks: Callable[[str], dict[str, Any]]
    query: str


def _named(parameter: str) -> Callable[[str], dict[str, Any]]:
    return lambda name: {parameter: name}


def _listed(parameter: str, **more: Any) -> Callable[[str], dict[str, Any]]:
    return lambda name: {parameter: [name], **more}


def _alias(arn: str) -> dict[str, Any]:
    function, _, name = arn.rpartition(":")
    return {"FunctionName": function, "Name": name}


_RESERVATION = _Reader(
    "ec2", "describe_capacity_reservations", _listed("CapacityReservationIds"), "CapacityReservations[0]"
)

_READERS: Mapping[str, Sequence[_Reader]] = {
    "AWS::AutoScaling::AutoScalingGroup": [
        _Reader(
            "autoscaling",
            "describe_auto_scaling_groups",
            _listed("AutoScalingGroupNames"),
            "AutoScalingGroups[0]",
        )
    ],
    "AWS::CloudWatch::Alarm": [
        _Reader("cloudwatch", "describe_alarms", _listed("AlarmNames"), "MetricAlarms[0]"),
    ],
    "AWS::EC2::CapacityReservation": [_RESERVATION],
    "Custom::CapacityReservation": [_RESERVATION],
    "AWS::EC2::LaunchTemplate": [
        _Reader(
            "ec2",
            "describe_launch_template_versions",
            lambda name: {"LaunchTemplateId": name, "Versions": ["$Latest"]},
            "LaunchTemplateVersions[0].LaunchTemplateData",
        )
    ],
    "AWS::EC2::PlacementGroup": [
        _Reader("ec2", "describe_placement_groups", _listed("GroupNames"), "PlacementGroups[0]"),
    ],
    "AWS::EC2::SecurityGroup": [
        _Reader("ec2", "describe_security_groups", _listed("GroupIds"), "SecurityGroups[0]"),
    ],
    "AWS::EC2::SpotFleet": [
        _Reader(
            "ec2",
            "describe_spot_fleet_requests",
            _listed("SpotFleetRequestIds"),
            "SpotFleetRequestConfigs[0].SpotFleetRequestConfig",
        )
    ],
    "AWS::FSx::FileSystem": [
        _Reader("fsx", "describe_file_systems", _listed("FileSystemIds"), "FileSystems[0]"),
    ],
    "AWS::Lambda::Alias": [_Reader("lambda", "get_alias", _alias, "@")],
    "AWS::Lambda::Function": [
        _Reader("lambda", "get_function_configuration", _named("FunctionName"), "@"),
        _Reader("lambda", "get_function_event_invoke_config", _named("FunctionName"), "@"),
    ],
    "AWS::S3::Bucket": [_Reader("s3", "get_bucket_lifecycle_configuration", _named("Bucket"), "Rules")],
    "AWS::SSM::Document": [_Reader("ssm", "describe_document", _named("Name"), "Document")],
    "AWS::Scheduler::Schedule": [_Reader("scheduler", "get_schedule", _named("Name"), "@")],
}

# What differs between two accounts, or from one day to the next, and says nothing.
_PASSING = re.compile(
    r"ResponseMetadata|.*(Date|Time|Timestamp|Modified)|.*Sha256|Hash|RevisionId|Owner(Id)?|ImageId|SnapshotId|"
    r"StateReason(Data)?|StateValue|DNSName|MountName|NetworkInterfaceIds|VpcId|Tags|LatestVersion|"
    r"CodeSize|HashType|PlatformTypes|Layers|UserData|RuntimeVersionConfig"
)


# What CloudFormation and the services choose: the end of a name, and an id.
_CHOSEN = re.compile(
    r"(?<=[A-Za-z0-9])-[A-Za-z0-9]{12}\b|\b[a-z]{2,4}-[0-9a-f]{8,17}\b|"
    r"\b[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\b"
)


def read_facts(client: Client, stack: str, account: str, *, uses: str | None = None) -> Facts:
    """Ask the services about every resource of a stack that is of a type that can be compared.

    Args:
        client: Makes clients.
        stack: The stack's name.
        account: The account's id, which is left out of what was said.
        uses: The stack whose exports it imports, for the names of what they say. Default: - none.
    """
    resources = stack_resources(client, stack)
    used = [] if uses is None else stack_resources(client, uses)
    names = {each["PhysicalResourceId"]: f"<{each['LogicalResourceId']}>" for each in (*used, *resources)}
    return {
        f"{each['LogicalResourceId']} ({each['ResourceType']})": _comparable(
            [_said(client, reader, each["PhysicalResourceId"]) for reader in _READERS[each["ResourceType"]]],
            {**names, account: "<account>"},
        )
        for each in resources
        if each["ResourceType"] in _READERS
    }


def _said(client: Client, reader: _Reader, name: str) -> Any:
    try:
        answer = getattr(client(reader.service), reader.operation)(**reader.asks(name))
    except ClientError as error:
        return {"could not be read": error.response["Error"]["Code"]}
    return jmespath.search(reader.query, answer)


def _comparable(value: Any, names: Mapping[str, str]) -> Any:
    """Return an answer without what passes, with names for ids, and lists in an order of their own."""
    if isinstance(value, Mapping):
        return {key: _comparable(each, names) for key, each in value.items() if not _PASSING.fullmatch(key)}
    if isinstance(value, list):
        return sorted((_comparable(each, names) for each in value), key=lambda each: json.dumps(each, sort_keys=True))
    if isinstance(value, str):
        for given, name in sorted(names.items(), key=lambda item: -len(item[0])):
            value = value.replace(given, name)
        return _CHOSEN.sub("<chosen>", value)
    return value if isinstance(value, bool | int | float | None) else str(value)


def fact_differences(local: Facts, found: Facts) -> list[str]:
    """Say what AWS says otherwise than the local AWS, a sentence each; what only AWS says is none.

    Args:
        local: What the local AWS said.
        found: What AWS said.
    """
    sentences = []
    for resource, said in local.items():
        if resource not in found:
            sentences.append(f"{resource}: it is not there")
            continue
        sentences += [f"{resource}: {sentence}" for sentence in _differences(said, found[resource], "")]
    return sentences


def _differences(local: Any, found: Any, path: str) -> Iterator[str]:
    if isinstance(local, Mapping) and isinstance(found, Mapping):
        for key, value in local.items():
            if value not in (None, "", [], {}) or key in found:
                yield from _differences(value, found.get(key), f"{path}.{key}")
    elif isinstance(local, list) and isinstance(found, list) and len(local) == len(found):
        for at, (one, other) in enumerate(zip(local, found, strict=True)):
            yield from _differences(one, other, f"{path}[{at}]")
    elif local != found:
        shown = json.dumps(found, default=str), json.dumps(local, default=str)
        yield f"{path.lstrip('.')} is {shown[0]} on AWS, {shown[1]} on the local AWS"
