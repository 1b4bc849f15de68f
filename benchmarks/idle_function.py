"""One run of the idle function as Lambda starts it: cold, in a process of its own.

`PYTHONPATH` says where the function's modules are; the rest of the environment is the function's own.
"""

from types import SimpleNamespace
from typing import TYPE_CHECKING, cast

from cluster_idle.handler import handler

if TYPE_CHECKING:
    from aws_lambda_powertools.utilities.typing import LambdaContext

CONTEXT = cast(
    "LambdaContext",
    SimpleNamespace(
        function_name="base-pod-idle",
        memory_limit_in_mb=256,
        invoked_function_arn="arn:aws:lambda:us-east-1:123456789012:function:base-pod-idle",
        aws_request_id="00000000-0000-4000-8000-000000000000",
    ),
)

handler({"action": "tick"}, CONTEXT)
