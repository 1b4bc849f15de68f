"""The control requests, `PUT /rehearsal/<name>`: how a rehearsal or a test sets the scene."""

from collections.abc import Callable, Mapping
from typing import Any

from rehearsal.local_aws.capacity import CAPACITY
from rehearsal.local_aws.services import auto_scaling, givens, layers


def _capacity(request: Mapping[str, Any]) -> Mapping[str, Any]:
    """Limit an instance type in a zone; groups that are short try again, as Auto Scaling keeps doing."""
    available = request.get("available", 0)
    CAPACITY.set(
        str(request["instance_type"]),
        str(request["availability_zone"]),
        None if available is None else int(available),
    )
    auto_scaling.reconcile_all()
    return {"capacity": CAPACITY.listed()}


def _layer(request: Mapping[str, Any]) -> Mapping[str, Any]:
    """Publish a layer version by its ARN."""
    layers.share(str(request["arn"]))
    return {"added": True}


CONTROLS: Mapping[str, Callable[[Mapping[str, Any]], Mapping[str, Any]]] = {
    "capacity": _capacity,
    "zone": givens.add_zone,
    "instance-type": givens.add_instance_type,
    "image": givens.add_image,
    "network": givens.add_network,
    "layer": _layer,
}
