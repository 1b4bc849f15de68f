"""What CloudWatch refuses of an alarm; moto stores whatever it is given.

https://docs.aws.amazon.com/AmazonCloudWatch/latest/APIReference/API_PutMetricAlarm.html
"""

from collections.abc import Callable
from functools import wraps
from typing import Any

from moto.core.responses import ActionResult

from local_aws.refusal import Refusal
from local_aws.services import events

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


def announced(original: Callable[..., None]) -> Callable[..., None]:
    """Return SetAlarmState so that EventBridge gets an event where the state changes.

    https://docs.aws.amazon.com/AmazonCloudWatch/latest/monitoring/cloudwatch-and-eventbridge.html
    """

    @wraps(original)
    def set_alarm_state(backend: Any, alarm_name: str, *more: Any) -> None:
        alarm = backend.alarms.get(alarm_name)
        # Without an alarm the original refuses.
        before = {} if alarm is None else {"reason": alarm.state_reason, "value": alarm.state_value}
        original(backend, alarm_name, *more)
        state = {"reason": alarm.state_reason, "value": alarm.state_value}
        if state["value"] != before["value"]:
            events.announce(
                {
                    "account": backend.account_id,
                    "region": backend.region_name,
                    "source": "aws.cloudwatch",
                    "detail_type": "CloudWatch Alarm State Change",
                    "resources": [alarm.alarm_arn],
                    "detail": {
                        "alarmName": alarm_name,
                        "configuration": {"description": alarm.description},
                        "previousState": before,
                        "state": state,
                    },
                }
            )

    return set_alarm_state
