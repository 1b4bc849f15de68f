"""How the power function is asked: an order is sent once, and again only where it did not arrive."""

import logging
from io import BytesIO
from typing import TYPE_CHECKING, Any, cast

import pytest

from cluster_common.failures import Failures
from cluster_idle.power_function import PowerFunction
from fake_service import refusal

if TYPE_CHECKING:
    from aws_lambda_powertools import Logger
    from mypy_boto3_lambda.client import LambdaClient


class FakeLambda:
    """A power function that refuses some calls first."""

    def __init__(self, *codes: str) -> None:
        self.codes, self.calls = list(codes), 0

    def invoke(self, **_: Any) -> dict[str, Any]:
        self.calls += 1
        if self.codes:
            raise refusal("Invoke", self.codes.pop(0), "no")
        return {"StatusCode": 200, "Payload": BytesIO(b'{"node_groups": []}')}


@pytest.mark.parametrize(
    ("codes", "calls", "pauses", "failed"),
    [
        ([], 1, [], False),
        (["TooManyRequestsException"] * 4, 5, [2, 4, 8, 16], False),
        (["TooManyRequestsException"] * 5, 5, [2, 4, 8, 16], True),
        (["ServiceException"], 1, [], True),
    ],
    ids=["at once", "busy for a while", "busy for good", "an answer that is lost"],
)
def test_an_order_is_repeated_only_while_the_function_is_busy(
    codes: list[str], calls: int, pauses: list[float], failed: bool
) -> None:
    service, waited = FakeLambda(*codes), list[float]()
    failures = Failures(cast("Logger", logging.getLogger("test")), subject_key="node_group")
    power = PowerFunction(lambda: cast("LambdaClient", service), "power", failures, waited.append)

    assert power.order({"action": "stop"}, "workers", "idle").failed is failed
    assert (service.calls, waited) == (calls, pauses)
