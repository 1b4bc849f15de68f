"""Session Manager's sessions: people open them, and there are no people here.

https://docs.aws.amazon.com/systems-manager/latest/APIReference/API_DescribeSessions.html
"""

from typing import Any

from moto.core.responses import ActionResult


def describe_sessions(_: Any) -> ActionResult:
    """Carry out DescribeSessions."""
    return ActionResult({"Sessions": []})
