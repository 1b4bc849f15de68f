"""`training-cluster import-map`: what a deleted stack has kept, as `cdk import --resource-mapping` takes it."""

import json
import re
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cdk_training_cluster_cli.core.session import aws_session, refusal

if TYPE_CHECKING:
    from mypy_boto3_cloudformation.client import CloudFormationClient

ImportMap = dict[str, dict[str, str]]

_TEMPLATE = ".template.json"
_IN_TEXT = re.compile(r"\$\{([A-Za-z0-9]+)")
# The kept nodes' group stands in the rules of the kept file system's: a new group of the nodes gets rules of its own.
_LEFT_OUT = "AWS::EC2::SecurityGroup"
_PERMISSIONS = "cloudformation:GetTemplateSummary, ListStackResources and ListStacks"


def run(file: Path, *, stack: str | None, region: str | None, profile: str | None) -> None:
    """Print the map on standard output, and what it leaves out on standard error.

    Args:
        file: The template of the stack that is to have the resources, as `cdk synth` writes it.
        stack: The deleted stack's name. None: the new one's.
        region: Its region. None: the profile's.
        profile: The profile of the AWS configuration. None: `AWS_PROFILE`, or the default one.

    Raises:
        ValueError: The file is no template, AWS does not answer, or no deleted stack has kept what it takes.
    """
    template, name = _read(file), stack or file.name.removesuffix(_TEMPLATE)
    session = aws_session("import-map", profile)
    try:
        client = session.client("cloudformation", region_name=region)
        kept = kept_resources(client, name)
        found = import_map(template, kept, identifiers(client, kept))
    except ValueError:
        raise
    except Exception as error:
        raise ValueError(
            f"CloudFormation did not answer ({refusal(error)}): give --region, and allow {_PERMISSIONS}"
        ) from error
    if not found:
        raise ValueError(f"the deleted stack {name} has kept nothing that {file} has and CloudFormation can import")
    for each in kept:
        if each["LogicalResourceId"] not in found:
            sys.stderr.write(f"left out: {each['ResourceType']} {each['PhysicalResourceId']}\n")
    sys.stdout.write(json.dumps(found, indent=2) + "\n")


def kept_resources(client: "CloudFormationClient", name: str) -> list[Mapping[str, Any]]:
    """Return what the newest deleted stack of a name has kept that kept anything; nothing if none has.

    A stack whose creation failed may come after the one that kept. CloudFormation shows stacks for 90 days.

    Args:
        client: CloudFormation.
        name: The stack's name.

    Raises:
        ValueError: There is no deleted stack of that name.

    Source: https://docs.aws.amazon.com/AWSCloudFormation/latest/APIReference/API_ListStackResources.html
    """
    pages = client.get_paginator("list_stacks").paginate(StackStatusFilter=["DELETE_COMPLETE"])
    stacks = [each for page in pages for each in page["StackSummaries"] if each["StackName"] == name]
    if not stacks:
        raise ValueError(
            f"there is no deleted stack {name} in {client.meta.region_name}: CloudFormation shows one for 90 days; "
            "give the deleted stack's name with --stack"
        )
    for stack in sorted(stacks, key=lambda each: each["CreationTime"], reverse=True):
        found = client.get_paginator("list_stack_resources").paginate(StackName=stack["StackId"])
        resources: Iterable[Mapping[str, Any]] = (each for page in found for each in page["StackResourceSummaries"])
        kept = [each for each in resources if each["ResourceStatus"] == "DELETE_SKIPPED"]
        if kept:
            return kept
    return []


def identifiers(client: "CloudFormationClient", kept: Iterable[Mapping[str, Any]]) -> dict[str, list[str]]:
    """Return the properties that identify resources, by type; types that CloudFormation cannot import are not there.

    Args:
        client: CloudFormation.
        kept: The resources.

    Source: https://docs.aws.amazon.com/AWSCloudFormation/latest/APIReference/API_GetTemplateSummary.html
    """
    resources = {each["LogicalResourceId"]: {"Type": each["ResourceType"]} for each in kept}
    if not resources:
        return {}
    answer = client.get_template_summary(TemplateBody=json.dumps({"Resources": resources}))
    summaries = answer.get("ResourceIdentifierSummaries", [])
    return {each["ResourceType"]: each["ResourceIdentifiers"][0].split(",") for each in summaries}


def import_map(
    template: Mapping[str, Any], kept: Iterable[Mapping[str, Any]], names: Mapping[str, list[str]]
) -> ImportMap:
    """Return the identifiers of the resources of a template that were kept under the same logical ids.

    Args:
        template: The template.
        kept: What was kept.
        names: The properties that identify resources, by type.
    """
    resources, found = template["Resources"], ImportMap()
    for each in kept:
        name, kind = each["LogicalResourceId"], each["ResourceType"]
        # What has several identifiers has them all in its physical id.
        values = each["PhysicalResourceId"].split("|")
        if resources.get(name, {}).get("Type") != kind or kind.startswith(_LEFT_OUT):
            continue
        if kind in names and len(values) == len(names[kind]):
            found[name] = dict(zip(names[kind], values, strict=True))
    while True:
        # `cdk import` makes a template of these alone: what refers to another resource waits for the deployment.
        lacking = {name for name in found if (_references(resources[name]) & resources.keys()) - found.keys()}
        if not lacking:
            return found
        found = {name: each for name, each in found.items() if name not in lacking}


def _references(node: Any) -> set[str]:  # noqa: ANN401 - any part of a template
    """Return the names that a part of a template refers to."""
    if isinstance(node, str):
        return set(_IN_TEXT.findall(node))
    if isinstance(node, list):
        return {name for each in node for name in _references(each)}
    if not isinstance(node, dict):
        return set()
    found = {name for each in node.values() for name in _references(each)}
    given = [node.get("Ref"), node.get("DependsOn"), node.get("Fn::GetAtt")]
    for each in given:
        values = each if isinstance(each, list) else [each]
        found |= {value.partition(".")[0] for value in values if isinstance(value, str)}
    return found


def _read(file: Path) -> Mapping[str, Any]:
    try:
        template: Mapping[str, Any] = json.loads(file.read_text(encoding="utf-8"))
        if all(each["Type"] for each in template["Resources"].values()):
            return template
        why = "a resource without a type"
    except (AttributeError, LookupError, OSError, TypeError, ValueError) as error:
        why = getattr(error, "strerror", None) or str(error)
    raise ValueError(f"{file} is no template of a stack ({why}): run cdk synth, and give cdk.out/NAME{_TEMPLATE}")
