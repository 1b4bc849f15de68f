"""Auto Scaling's warm pools: instances that have booted once and are stopped until their group grows.

https://docs.aws.amazon.com/autoscaling/ec2/userguide/ec2-auto-scaling-warm-pools.html
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from moto.core.exceptions import ServiceException
from moto.core.responses import ActionResult, EmptyResult
from moto.core.utils import utcnow

from local_aws.capacity import CAPACITY
from local_aws.refusal import Refusal
from local_aws.services.answers import page
from local_aws.services.group_rules import group_named, warm_pool_trouble
from local_aws.services.launches import insufficient_capacity, resolved_image
from local_aws.services.purchases import purchases
from local_aws.services.scaling_activities import remember

_STOPPED, _RUNNING = "Stopped", "Running"
_GONE = frozenset({"shutting-down", "terminated"})
_PAGE = 50


@dataclass(frozen=True)
class WarmPool:
    """A group's WarmPoolConfiguration, in the attributes that moto's answers read."""

    max_group_prepared_capacity: int | None = None
    min_size: int = 0
    pool_state: str = _STOPPED
    instance_reuse_policy: Mapping[str, bool] = field(default_factory=dict)

    def size_beside(self, group: Any, members: int) -> int:
        """Return how many instances the pool of a group has beside so many members.

        https://docs.aws.amazon.com/autoscaling/ec2/APIReference/API_PutWarmPool.html
        """
        prepared = self.max_group_prepared_capacity
        return max(self.min_size, (group.max_size if prepared is None else prepared) - members)


def pool_of(group: Any) -> WarmPool | None:
    """Return a group's warm pool; moto asks for it before it has made room for one."""
    return getattr(group, "warm_pool", None)


def instances_of(group: Any) -> list[Any]:
    """Return the instances in a group's warm pool."""
    instances: list[Any] = vars(group).setdefault("warm_instances", [])
    instances[:] = [state for state in instances if state.instance.state not in _GONE]
    return instances


def size_of(group: Any) -> int | None:
    """Return WarmPoolSize as DescribeAutoScalingGroups shows it."""
    return len(instances_of(group)) if pool_of(group) else None


def check(group: Any) -> None:
    """Refuse a warm pool that the group cannot have.

    Raises:
        Refusal: with the words of the documentation.
    """
    trouble = warm_pool_trouble(group)
    if trouble is not None:
        raise Refusal("ValidationError", trouble)
    ec2 = group.ec2_backend
    for purchase in purchases(group):
        image = ec2.amis.get(resolved_image(ec2, purchase.data.get("ImageId")))
        if group.warm_pool.pool_state == _STOPPED and image is not None and image.root_device_type != "ebs":
            raise Refusal(
                "ValidationError",
                "Instances can be put in a Stopped state only if they have an Amazon EBS volume as their root "
                f"device; that of {image.id} is {image.root_device_type}.",
            )


# What a group does with its pool


def enter(group: Any, wanted: int) -> int:
    """Move up to `wanted` prepared instances from the pool into the group and return how many there were.

    A stopped instance needs capacity again when it starts, and EC2 may have none.
    """
    moved = 0
    for state in [each for each in instances_of(group) if _is_prepared(each)][:wanted]:
        cause = _cause(f"was moved from the warm pool in response to a desired capacity of {group.desired_capacity}")
        try:
            _start(group, state)
        except ServiceException as refusal:
            said = f"{refusal.code} - {refusal.message}"
            failed = f"Launching a new EC2 instance from warm pool.  Status Reason: {said}"
            remember(group, failed, cause, "Failed", said)
            continue
        instances_of(group).remove(state)
        join(group, state)
        remember(group, f"Launching a new EC2 instance from warm pool: {state.instance.id}", cause, "Successful")
        moved += 1
    return moved


def _is_prepared(state: Any) -> bool:
    return state.lifecycle_state in {f"Warmed:{_STOPPED}", f"Warmed:{_RUNNING}"}


def _start(group: Any, state: Any) -> None:
    instance = state.instance
    if instance.state == "running":
        return
    zone = instance.placement.zone
    reserved = getattr(instance, "capacity_reservation_id", None) is not None
    if not reserved and not CAPACITY.take(instance.instance_type, zone, 1):
        raise insufficient_capacity(group.ec2_backend, instance.instance_type, zone)
    group.ec2_backend.start_instances([instance.id])


def join(group: Any, state: Any) -> None:
    """Take an instance into a group and into service: every node reports to the group's hooks as soon as it boots."""
    group.instance_states.append(state)
    state.lifecycle_state = "InService"


def take_back(group: Any, spare: Sequence[Any]) -> list[Any]:
    """Return instances that leave the group to its pool as far as it has room, and return the others."""
    pool = pool_of(group)
    if pool is None or not pool.instance_reuse_policy.get("ReuseOnScaleIn"):
        return list(spare)
    room = max(0, pool.size_beside(group, group.desired_capacity) - len(instances_of(group)))
    for state in spare[:room]:
        group.instance_states.remove(state)
        instances_of(group).append(state)
        _rest(group, state)
        cause = _cause(f"was returned to the warm pool in response to a desired capacity of {group.desired_capacity}")
        remember(group, f"Moving EC2 instance to warm pool: {state.instance.id}", cause, "Successful")
    return list(spare[room:])


def _rest(group: Any, state: Any) -> None:
    if group.warm_pool.pool_state == _STOPPED:
        group.ec2_backend.stop_instances([state.instance.id])
    state.lifecycle_state = f"Warmed:{group.warm_pool.pool_state}"


def refill(group: Any, launch: Callable[..., None]) -> None:
    """Bring the pool to its size.

    Args:
        group: The group.
        launch: Launches a number of instances of the group, and hands each to its `join`.
    """
    pool = pool_of(group)
    if pool is None:
        return
    missing = pool.size_beside(group, group.desired_capacity) - len(instances_of(group))
    if missing > 0:
        launch(group, missing, join=partial(_warm_up, group))
    # What could not start, since EC2 had no capacity, stays until it can.
    spare = len(instances_of(group)) - pool.size_beside(group, len(group.instance_states))
    if spare > 0:
        _terminate(group, instances_of(group)[-spare:])


def _warm_up(group: Any, state: Any) -> None:
    instances_of(group).append(state)
    _rest(group, state)


def _terminate(group: Any, doomed: Sequence[Any]) -> None:
    for state in list(doomed):
        instances_of(group).remove(state)
        group.ec2_backend.terminate_instances([state.instance.id])
        remember(
            group,
            f"Terminating EC2 instance: {state.instance.id}",
            _cause("was taken out of the warm pool in response to its size"),
            "Successful",
        )


def dissolve(group: Any) -> None:
    """Take a group's pool away, with the instances in it."""
    _terminate(group, instances_of(group))
    group.warm_pool = None


def _cause(what: str) -> str:
    return f"At {utcnow():%Y-%m-%dT%H:%M:%SZ} an instance {what}."


# The actions


def put_warm_pool(response: Any) -> ActionResult:
    """Answer PutWarmPool: the pool is filled at once."""
    group, before = group_named(response), group_named(response).warm_pool
    was = before or WarmPool()
    prepared = response._get_int_param("MaxGroupPreparedCapacity", was.max_group_prepared_capacity)
    state = response._get_param("PoolState", was.pool_state)
    if state not in {_STOPPED, _RUNNING}:
        raise NotImplementedError(f"a warm pool of instances in the state {state}")
    group.warm_pool = WarmPool(
        # -1 takes the value away.
        max_group_prepared_capacity=None if prepared == -1 else prepared,
        min_size=response._get_int_param("MinSize", was.min_size),
        pool_state=state,
        instance_reuse_policy=response._get_param("InstanceReusePolicy", was.instance_reuse_policy),
    )
    try:
        check(group)
    except Exception:  # whatever it is: a pool that is refused changes nothing
        group.warm_pool = before
        raise
    group.set_desired_capacity(group.desired_capacity)
    return EmptyResult()


def describe_warm_pool(response: Any) -> ActionResult:
    """Answer DescribeWarmPool."""
    group = group_named(response)
    instances = instances_of(group)
    some, token = page(instances, response._get_param("NextToken"), response._get_int_param("MaxRecords", _PAGE))
    return ActionResult(
        {
            "WarmPoolConfiguration": group.warm_pool,
            "Instances": some,
            "NextToken": token,
        }
    )


def delete_warm_pool(response: Any) -> ActionResult:
    """Answer DeleteWarmPool, which needs ForceDelete while instances are in the pool."""
    group = group_named(response)
    if instances_of(group) and not response._get_bool_param("ForceDelete", False):
        raise Refusal("ResourceInUse", "You cannot delete a warm pool while there are instances in it.")
    dissolve(group)
    return EmptyResult()


def with_warm_instances(original: Callable[..., Any]) -> Callable[..., Any]:
    """Return DescribeAutoScalingInstances so that it shows the instances in warm pools too."""

    def describe_auto_scaling_instances(backend: Any, instance_ids: Sequence[str]) -> list[Any]:
        warm = [
            state
            for group in backend.autoscaling_groups.values()
            for state in instances_of(group)
            if not instance_ids or state.instance.id in instance_ids
        ]
        return [*original(backend, instance_ids), *warm]

    return describe_auto_scaling_instances
