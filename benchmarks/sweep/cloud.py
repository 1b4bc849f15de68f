"""The services that a sweep calls: they hold one fleet, remember what was done to it, and count what was asked."""

import threading
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from moto.core.serialize import get_serializer_class
from moto.core.utils import get_service_model

from benchmarks.sweep.fleet import Fleet, index_of, instance_id
from benchmarks.sweep.goals import DESCRIBE, RE_READ
from benchmarks.sweep.pages import Pages
from benchmarks.sweep.series import metric_data
from local_aws.refusal import Refusal

# https://docs.aws.amazon.com/AWSEC2/latest/APIReference/API_DescribeInstances.html
_MOST_RESULTS = 1000
_ID_FILTER = "instance-id"

_RUNNING, _STOPPING = {"Code": 16, "Name": "running"}, {"Code": 64, "Name": "stopping"}


@dataclass(frozen=True, kw_only=True)
class Answer:
    """What a service answers.

    Attributes:
        body: Its body.
        content_type: The body's type.
        status: The HTTP status.
    """

    body: bytes
    content_type: str = "text/xml"
    status: int = 200


class Cloud:
    """One account with a fleet in it.

    Args:
        fleet: The fleet.
    """

    def __init__(self, fleet: Fleet) -> None:
        self.fleet = fleet
        self.requests = Counter[str]()
        self.stopped: set[int] = set()
        self._tags: dict[int, dict[str, str]] = {}
        self._pages = Pages(fleet)
        self._lock = threading.Lock()
        self._others: Mapping[tuple[str, str], Callable[[Mapping[str, str]], dict[str, Any]]] = {
            ("ec2", "StopInstances"): self._stop,
            ("ec2", "CreateTags"): self._tag,
            ("ec2", "DeleteTags"): self._untag,
            ("ec2", "DescribeSpotInstanceRequests"): lambda _: {"SpotInstanceRequests": []},
            ("autoscaling", "DescribeAutoScalingGroups"): lambda _: {"AutoScalingGroups": []},
            ("sns", "GetTopicAttributes"): lambda _: {"Attributes": {"SubscriptionsConfirmed": "1"}},
            ("dynamodb", "Query"): lambda _: {"Items": self.fleet.warnings()},
            ("dynamodb", "BatchWriteItem"): lambda _: {"UnprocessedItems": {}},
            ("sns", "Publish"): lambda _: {"MessageId": "00000000-0000-4000-8000-000000000000"},
        }

    @property
    def warned(self) -> int:
        """How many instances carry tags that they had not when the fleet was made."""
        return sum(bool(set(tags) - set(self.fleet.tags(index))) for index, tags in self._tags.items())

    def answer(self, service: str, operation: str, body: bytes, form: Mapping[str, str]) -> Answer:
        """Answer one request.

        Args:
            service: The service's name, as requests are signed for it.
            operation: The operation's name.
            body: The request's body.
            form: The same, where it is a form.
        """
        name = operation
        if operation == DESCRIBE:
            name = RE_READ if _ids(form) else DESCRIBE
        with self._lock:
            self.requests[name] += 1
        try:
            match service, operation:
                case "ec2", "DescribeInstances":
                    return Answer(body=self._describe(form))
                case "monitoring", "GetMetricData":
                    return Answer(body=metric_data(self.fleet, body), content_type="application/x-amz-json-1.0")
                case "lambda", "Invoke":
                    return Answer(body=b"{}", content_type="application/json")
            if (service, operation) not in self._others:
                raise Refusal("NotInTheSweep", f"the sweep's server cannot do {operation} of {service}")  # noqa: TRY301
            result: object = self._others[service, operation](form)
        except Refusal as refusal:
            result = refusal
        return _serialized(service, operation, result)

    def _describe(self, form: Mapping[str, str]) -> bytes:
        ids, token = _ids(form), None
        # Filters other than by id are not looked at: they would leave nothing out.
        indexes = self._known(ids) if ids else list(range(self.fleet.size))
        if "MaxResults" in form:
            if "InstanceId.1" in form:
                raise Refusal("InvalidParameterCombination", "instancesSet cannot be used with maxResults")
            start = int(form.get("NextToken") or 0)
            end = start + min(int(form["MaxResults"]), _MOST_RESULTS)
            token = str(end) if end < len(indexes) else None
            indexes = indexes[start:end]
        return self._pages.page(indexes, tags=self._tags_of, is_stopping=self.stopped.__contains__, token=token)

    def _known(self, ids: list[str]) -> list[int]:
        known = {instance_id(index): index for index in map(index_of, ids) if index < self.fleet.size}
        missing = [each for each in ids if each not in known]
        if missing:
            raise Refusal("InvalidInstanceID.NotFound", f"The instance IDs '{', '.join(missing)}' do not exist")
        return list(known.values())

    def _tags_of(self, index: int) -> Mapping[str, str]:
        return self._tags.get(index) or self.fleet.tags(index)

    def _stop(self, form: Mapping[str, str]) -> dict[str, Any]:
        indexes = self._known(_numbered(form, "InstanceId."))
        changes = [
            {
                "InstanceId": instance_id(index),
                "CurrentState": _STOPPING,
                "PreviousState": _STOPPING if index in self.stopped else _RUNNING,
            }
            for index in indexes
        ]
        self.stopped.update(indexes)
        return {"StoppingInstances": changes}

    def _tag(self, form: Mapping[str, str]) -> dict[str, Any]:
        new = dict(zip(_numbered(form, "Tag.", ".Key"), _numbered(form, "Tag.", ".Value"), strict=True))
        for index in self._known(_numbered(form, "ResourceId.")):
            self._tags[index] = {**self._tags_of(index), **new}
        return {}

    def _untag(self, form: Mapping[str, str]) -> dict[str, Any]:
        old = _numbered(form, "Tag.", ".Key")
        for index in self._known(_numbered(form, "ResourceId.")):
            self._tags[index] = {key: value for key, value in self._tags_of(index).items() if key not in old}
        return {}


def _ids(form: Mapping[str, str]) -> list[str]:
    """Return the ids that instances are asked for by; none: all instances are asked for."""
    return _numbered(form, "InstanceId.") or _filter(form, _ID_FILTER)


def _filter(form: Mapping[str, str], name: str) -> list[str]:
    """Return the values of a filter; none: there is no such filter."""
    names = _numbered(form, "Filter.", ".Name")
    return _numbered(form, f"Filter.{names.index(name) + 1}.Value.") if name in names else []


def _numbered(form: Mapping[str, str], before: str, after: str = "") -> list[str]:
    """Return the values of a form's list: `InstanceId.1`, `InstanceId.2` and so on."""
    values = list[str]()
    while (value := form.get(f"{before}{len(values) + 1}{after}")) is not None:
        values.append(value)
    return values


def _serialized(service: str, operation: str, result: object) -> Answer:
    model = get_service_model(service)
    serializer = get_serializer_class(model.service_name, model.metadata["protocol"])
    answer = serializer(model.operation_model(operation)).serialize(result)
    return Answer(
        body=answer["body"].encode(), content_type=answer["headers"]["Content-Type"], status=answer["status_code"]
    )
