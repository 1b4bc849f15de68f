"""Log deliveries of services that moto does not know.

https://docs.aws.amazon.com/AmazonCloudWatchLogs/latest/APIReference/API_PutDeliverySource.html
"""

from collections.abc import Callable
from functools import wraps
from typing import Any

from moto.logs.models import DeliverySource

from local_aws.refusal import Refusal

_LOGS = {"pcs": ("PCS_SCHEDULER_LOGS", "PCS_JOBCOMP_LOGS", "PCS_SCHEDULER_AUDIT_LOGS")}


def with_more_services(original: Callable[..., Any]) -> Callable[..., Any]:
    """Return PutDeliverySource so that it takes the logs of these services too."""

    @wraps(original)
    def put_delivery_source(
        backend: Any, name: str, resource_arn: str, log_type: str, tags: dict[str, str]
    ) -> DeliverySource:
        kinds = _LOGS.get(resource_arn.split(":")[2])
        if kinds is None:
            return original(backend, name, resource_arn, log_type, tags)
        if log_type not in kinds:
            raise Refusal("ValidationException", "This service is not allowed for this LogSource.")
        if name in backend.delivery_sources:
            raise Refusal("ConflictException", f"The delivery source {name} exists already")
        source = DeliverySource(backend.account_id, backend.region_name, name, resource_arn, log_type, tags)
        backend.delivery_sources[name] = source
        return source

    return put_delivery_source
