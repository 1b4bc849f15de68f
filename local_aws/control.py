"""The control requests, `PUT /local-aws/<name>`: how a rehearsal or a test sets the scene."""

from collections.abc import Callable, Mapping
from typing import Any

from moto.s3.models import s3_backends
from moto.utilities.utils import get_partition

from local_aws.calls import RECORD
from local_aws.capacity import CAPACITY
from local_aws.faults import FAULTS
from local_aws.services import (
    auto_scaling,
    events,
    given_capacity,
    givens,
    invocations,
    keys,
    layers,
    lifecycle_hooks,
    lustre_associations,
    lustre_files,
    lustre_tasks,
    managed_nodes,
    metric_data,
    pcs,
    prices,
    quotas,
    reserved_capacity,
    role_sessions,
    spot_fleets,
    stops,
    suspensions,
)


def _capacity(request: Mapping[str, Any]) -> Mapping[str, Any]:
    """Limit an instance type in a zone; groups and fleets that are short try again, as AWS keeps doing."""
    available = request.get("available", 0)
    CAPACITY.set(
        str(request["instance_type"]),
        str(request["availability_zone"]),
        None if available is None else int(available),
    )
    auto_scaling.reconcile_all()
    spot_fleets.look_after_all()
    return {"capacity": CAPACITY.listed()}


def _layer(request: Mapping[str, Any]) -> Mapping[str, Any]:
    """Publish a layer version by its ARN."""
    layers.share(str(request["arn"]))
    return {"added": True}


def _objects(request: Mapping[str, Any]) -> Mapping[str, Any]:
    """Put many small objects into a bucket."""
    backend = s3_backends[request["account"]][get_partition(request["region"])]
    return {"put": lustre_files.put_objects(backend, request)}


def _fault(request: Mapping[str, Any]) -> Mapping[str, Any]:
    """Order a fault."""
    FAULTS.add(request)
    return {}


def _clear_faults(_: Mapping[str, Any]) -> Mapping[str, Any]:
    """Take all faults back, and the statuses of metrics; show all reservations."""
    metric_data.clear_statuses()
    reserved_capacity.show_all()
    return {"idle": FAULTS.clear()}


def _calls(_: Mapping[str, Any]) -> Mapping[str, Any]:
    """Tell of the calls since they were last forgotten."""
    return {"calls": RECORD.listed()}


def _forget_calls(_: Mapping[str, Any]) -> Mapping[str, Any]:
    """Forget the calls so far."""
    RECORD.forget()
    return {}


CONTROLS: Mapping[str, Callable[[Mapping[str, Any]], Mapping[str, Any]]] = {
    "capacity": _capacity,
    "capacity-blocks": given_capacity.put_capacity_block,
    "hidden-reservations": reserved_capacity.hide_new,
    "capacity-reservations": given_capacity.add_capacity_reservation,
    "zone": givens.add_zone,
    "instance-type": givens.add_instance_type,
    "image": givens.add_image,
    "network": givens.add_network,
    "eks-cluster": givens.add_eks_cluster,
    "layer": _layer,
    "key": keys.add_key,
    "jobs": lifecycle_hooks.keep_busy,
    "event": events.announce,
    "suspend-launching": suspensions.suspend_launching,
    "objects": _objects,
    "file-system": lustre_associations.directory,
    "link": lustre_associations.set_fate,
    "task": lustre_tasks.set_fate,
    "nodes": managed_nodes.set_up,
    "node": managed_nodes.set_node,
    "fault": _fault,
    "clear-faults": _clear_faults,
    "calls": _calls,
    "forget-calls": _forget_calls,
    "metric-status": metric_data.set_status,
    "instance-metric": metric_data.add_instance_metric,
    "instance-credentials": role_sessions.instance_credentials,
    "launch-time": stops.set_launch_time,
    "slurm-nodes": pcs.need_nodes,
    "spot-price": prices.set_spot_price,
    "product-price": prices.set_product_price,
    "clock": invocations.set_clock,
    "quota": quotas.set_quota,
}
