"""The aliases through which the power function takes commands.

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
