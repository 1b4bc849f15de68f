"""The aliases through which the power function takes commands.

Lambda does not tell a function who invokes it. Each alias has a permission of its own, and a function is told which
one it is invoked through: so it knows which commands its caller may give.
Sources: https://docs.aws.amazon.com/lambda/latest/dg/python-context.html and
https://docs.aws.amazon.com/lambda/latest/dg/lambda-api-permissions-ref.html
"""

from enum import StrEnum


class Alias(StrEnum):
    """An alias of the power function."""

    OPERATE = "operate"
    """For people and their programs, which may give every command."""

    START = "start"
    """For the runbook, which starts node groups."""

    IDLE = "idle"
    """For the function that stops idle nodes."""

    BUDGET = "budget"
    """For the function that watches what the cluster costs, which may stop and limit node groups."""
