"""What CloudWatch refuses of an alarm; moto stores whatever it is given.

https://docs.aws.amazon.com/AmazonCloudWatch/latest/APIReference/API_PutMetricAlarm.html
"""

from collections.abc import Callable
from functools import wraps
from typing import Any

from moto.core.responses import ActionResult

from local_aws.refusal import Refusal

_SHORT_PERIODS = (10, 20, 30)
_MINUTE, _DAY = 60, 86_400


def checked(original: Callable[[Any], ActionResult]) -> Callable[[Any], ActionResult]:
    """Return PutMetricAlarm so that it checks periods and data points first."""

    @wraps(original)
    def put_metric_alarm(response: Any) -> ActionResult:
        period = response._get_int_param("Period")
        periods = response._get_int_param("EvaluationPeriods")
        points = response._get_int_param("DatapointsToAlarm")
        if period is not None and period not in _SHORT_PERIODS and (period < _MINUTE or period % _MINUTE):
            raise Refusal("ValidationError", "Metric alarm period must be 10, 20, 30 or a multiple of 60")
        if points is not None and points > periods:
            raise Refusal("ValidationError", "DatapointsToAlarm must be less than or equal to EvaluationPeriods")
        if period is not None and period * periods > _DAY * (7 if period >= _MINUTE * 60 else 1):
            raise Refusal(
                "ValidationError", "Metrics cannot be checked across more than a day (EvaluationPeriods * Period)"
            )
        return original(response)

    return put_metric_alarm
