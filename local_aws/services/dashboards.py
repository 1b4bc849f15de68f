"""What CloudWatch refuses of a dashboard; moto stores any JSON.

https://docs.aws.amazon.com/AmazonCloudWatch/latest/APIReference/CloudWatch-Dashboard-Body-Structure.html
"""

import json
import re
from collections.abc import Callable, Iterator
from functools import wraps
from typing import Any

from moto.cloudwatch.models import CloudWatchBackend, Dashboard

from local_aws.refusal import Refusal

_MAX_WIDGETS, _MAX_ALARMS, _MAX_METRICS, _COLUMNS, _MAX_HEIGHT = 500, 100, 500, 24, 1000
_MAX_EXPRESSION = 2048
_NAME = re.compile(r"[A-Za-z0-9_-]{1,255}")
_REQUIRED = {
    "alarm": ("alarms",),
    "custom": ("endpoint",),
    "explorer": ("metrics",),
    "log": ("query", "region"),
    "metric": ("region",),
    "text": ("markdown",),
}


def checked(original: Callable[..., Dashboard]) -> Callable[..., Dashboard]:
    """Return PutDashboard so that it checks name and body first."""

    @wraps(original)
    def put_dashboard(backend: CloudWatchBackend, name: str, body: str) -> Dashboard:
        problems = [*_problems(name, body)]
        if problems:
            raise Refusal("InvalidParameterInput", f"The dashboard body is invalid: {'; '.join(problems)}")
        return original(backend, name, body)

    return put_dashboard


def _problems(name: str, body: str) -> Iterator[str]:
    if not _NAME.fullmatch(name):
        yield f"the name {name!r} has other characters than A-Z, a-z, 0-9, - and _, or more than 255"
    try:
        found = json.loads(body)
    except ValueError:
        yield "it is no JSON"
        return
    widgets = found.get("widgets") if isinstance(found, dict) else None
    if not isinstance(widgets, list):
        yield "it must have an array widgets"
        return
    if len(widgets) > _MAX_WIDGETS:
        yield f"it has {len(widgets)} widgets, and may have {_MAX_WIDGETS}"
    for number, widget in enumerate(widgets):
        yield from (f"/widgets/{number}: {problem}" for problem in _widget_problems(widget))


def _widget_problems(widget: dict[str, Any]) -> Iterator[str]:
    kind, properties = widget.get("type"), widget.get("properties", {})
    if kind not in _REQUIRED:
        yield f"there is no type {kind!r}"
        return
    yield from (f"{key} is required" for key in _REQUIRED[kind] if key not in properties)
    x, width, height = widget.get("x", 0), widget.get("width", 6), widget.get("height", 6)
    if not (0 <= x < _COLUMNS and 1 <= width <= _COLUMNS - x and 1 <= height <= _MAX_HEIGHT):
        yield f"x {x}, width {width} and height {height} do not fit"
    if kind == "alarm" and not 0 < len(properties.get("alarms", ())) <= _MAX_ALARMS:
        yield f"it must have 1 to {_MAX_ALARMS} alarms"
    if kind == "metric":
        yield from _metric_problems(properties.get("metrics", []))


def _metric_problems(metrics: list[list[Any]]) -> Iterator[str]:
    if len(metrics) > _MAX_METRICS:
        yield f"it has {len(metrics)} metrics, and may have {_MAX_METRICS}"
    settings = [entry[-1] if isinstance(entry[-1], dict) else {} for entry in metrics]
    ids = [each["id"] for each in settings if "id" in each]
    if len(ids) != len(set(ids)) or not all(re.fullmatch(r"[a-z]\w*", each) for each in ids):
        yield f"the ids {', '.join(ids)} must differ and begin with a lower-case letter"
    for entry, each in zip(metrics, settings, strict=True):
        expression = each.get("expression", "-")
        names = [part for part in entry if not isinstance(part, dict)]
        if not 0 < len(expression) <= _MAX_EXPRESSION:
            yield f"an expression has {len(expression)} characters, and may have {_MAX_EXPRESSION}"
        if "expression" not in each and (len(names) < len(("namespace", "name")) or len(names) % 2):
            yield f"{names} is no namespace, name, and pairs of dimensions"
