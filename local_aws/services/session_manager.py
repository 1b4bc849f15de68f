"""Session Manager's sessions, of which none is ever open here.

https://docs.aws.amazon.com/systems-manager/latest/APIReference/API_DescribeSessions.html
"""

from typing import Any

from moto.core.responses import ActionResult


def describe_sessions(_: Any) -> ActionResult:
    """Answer DescribeSessions."""
    return ActionResult({"Sessions": []})
