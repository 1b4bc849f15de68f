"""The aliases through which functions take what not every caller may send them.

Lambda does not say who invokes a function. Each alias has a permission of its own, and the context of an invocation
names the alias: so the function knows which commands its caller may send.
Sources: https://docs.aws.amazon.com/lambda/latest/dg/python-context.html and
https://docs.aws.amazon.com/lambda/latest/dg/lambda-api-permissions-ref.html
"""

from enum import StrEnum


class Alias(StrEnum):
    """An alias of the power function."""

    OPERATE = "operate"
    """For operators and their programs, which may send every command."""

    START = "start"
    """For the runbook, which starts node groups."""

    IDLE = "idle"
    """For the idle function, which may stop node groups and terminate nodes."""

    BUDGET = "budget"
    """For the spend function, which may stop and limit node groups."""


EVENTS_ALIAS = "events"
"""The alias of the health function, for EventBridge, which brings what nodes and AWS say of nodes."""

# arn:aws:lambda:us-east-1:111122223333:function:name, and :alias where it is invoked through one.
_PARTS_BEFORE_AN_ALIAS = 7


def alias_of(function_arn: str) -> str:
    """Return the name of the alias that a function is invoked through. Empty: none.

    Args:
        function_arn: The ARN that it is invoked by, as its context has it.
    """
    name = ":".join(function_arn.split(":")[_PARTS_BEFORE_AN_ALIAS:])
    return "" if name == "$LATEST" else name
