"""What the synthesized stacks of a cluster with every part hold: the resources of each construct, and all alarms."""

import re
from collections import Counter, defaultdict
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import aws_cdk
import constructs
from aws_cdk import aws_cloudwatch as cloudwatch

import cdk_training_cluster
from cdk_training_cluster_file import read_cluster_file
from cdk_training_cluster_stacks.building import built_stacks

FILE = Path(__file__).with_name("everything.yaml")
_ALARM = re.compile(r"^[^:]+: (?P<trouble>.+?)\. (?P<remedy>Look in .+?) Runbook: \S+#(?P<anchor>\S+?)$", re.DOTALL)
_TOKEN = re.compile(r"(?:the (log group|queue) )?\$\{Token\[[^]]+\]\}")


@cache
def _synthesized() -> tuple[dict[str, Counter[str]], dict[str, tuple[str, str]]]:
    resources: defaultdict[str, Counter[str]] = defaultdict(Counter)
    alarms = {}
    with built_stacks(read_cluster_file(FILE)) as (app, _):
        for node in app.node.find_all():
            if isinstance(node, aws_cdk.CfnResource):
                resources[_owner(node)][node.cfn_resource_type] += 1
            if isinstance(node, cloudwatch.CfnAlarm):
                text = _ALARM.match(str(node.alarm_description))
                if text is None:
                    raise LookupError(f"{node.node.path} does not say what to do and where to read on")
                alarms[text["anchor"]] = (text["trouble"], text["remedy"])
    return resources, alarms


def _owner(resource: constructs.IConstruct) -> str:
    """Return the innermost public construct that a resource is in."""
    names = [type(scope).__name__ for scope in resource.node.scopes]
    public = [name for name in names if name in cdk_training_cluster.__all__]
    return public[-1] if public else ""


def resources(construct: str) -> str:
    """Return a construct's resources, each with its number where there are several.

    Args:
        construct: The class's name.
    """
    found = _synthesized()[0].get(construct)
    if not found:
        raise LookupError(f"{construct} makes no resource in {FILE.name}")
    items = (f"{number} x `{kind}`" if number > 1 else f"`{kind}`" for kind, number in sorted(found.items()))
    return f"In a cluster with every part, without the constructs inside: {', '.join(items)}."


def alarms() -> Iterator[tuple[str, str, str]]:
    """Yield each alarm's anchor, what it says and what to do."""
    for anchor, (trouble, remedy) in sorted(_synthesized()[1].items()):
        yield anchor, _plain(trouble), _plain(remedy)


def _plain(text: str) -> str:
    """Name what the template refers to: the function, its log group or its queue."""
    return _TOKEN.sub(lambda token: f"the function's {token[1]}" if token[1] else "the function", text)
