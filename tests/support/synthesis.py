"""Stacks to build constructs in, and what comes out of them."""

from typing import Any

from aws_cdk import App, Environment, Stack
from aws_cdk.assertions import Annotations, Match, Template

ZONE = "us-east-1b"


def new_stack(*, account: str | None = None, region: str | None = "us-east-1") -> Stack:
    """Return an empty stack of an app of its own.

    Args:
        account: The account it names. Default: - none.
        region: The region it names. Default: - us-east-1.
    """
    return Stack(App(), "Test", env=Environment(account=account, region=region))


def resources(stack: Stack, kind: str, properties: Any = None) -> dict[str, Any]:
    """Return the resources of one type that match, by logical id.

    Args:
        stack: The stack to synthesize.
        kind: The CloudFormation type.
        properties: What they must hold, as in `aws_cdk.assertions`. Default: - anything.
    """
    wanted = {} if properties is None else {"Properties": properties}
    return dict(Template.from_stack(stack).find_resources(kind, wanted))


def only(stack: Stack, kind: str, properties: Any = None) -> dict[str, Any]:
    """Return the one resource of a type that matches.

    Args:
        stack: The stack to synthesize.
        kind: The CloudFormation type.
        properties: What it must hold. Default: - anything.
    """
    found = resources(stack, kind, properties)
    assert len(found) == 1, f"{len(found)} {kind}"
    return dict(next(iter(found.values())))


def warnings(stack: Stack) -> list[str]:
    """Return the texts of the warnings in a stack, each with its id.

    Args:
        stack: The stack to synthesize.
    """
    found = Annotations.from_stack(stack).find_warning("*", Match.any_value())
    return [str(message.entry.data) for message in found]
