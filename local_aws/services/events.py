"""What EventBridge's PutTargets refuses."""

import json
from collections.abc import Callable, Mapping, Sequence
from functools import wraps
from typing import Any

from local_aws.refusal import Refusal


def checked_targets(original: Callable[..., Any]) -> Callable[..., Any]:
    """Return PutTargets so that it reads the constant inputs first.

    https://docs.aws.amazon.com/eventbridge/latest/APIReference/API_Target.html (Input)
    """

    @wraps(original)
    def put_targets(backend: Any, name: str, bus: str | None, targets: Sequence[Mapping[str, Any]]) -> Any:
        for target in targets:
            try:
                json.loads(target.get("Input") or "null")
            except ValueError as error:
                raise Refusal(
                    "ValidationException", f"JSON syntax error in input for target {target['Id']}."
                ) from error
        return original(backend, name, bus, targets)

    return put_targets
