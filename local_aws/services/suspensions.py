"""Processes of Auto Scaling groups that do not run: an operator suspended them, or Auto Scaling did.

https://docs.aws.amazon.com/autoscaling/ec2/userguide/as-suspend-resume-processes.html
"""

from collections.abc import Iterable, Mapping
from typing import Any

from moto.autoscaling.models import autoscaling_backends
from moto.core.responses import ActionResult, EmptyResult
from moto.core.utils import utcnow

from local_aws.refusal import Refusal
from local_aws.services import auto_scaling
from local_aws.services.group_rules import group_named

_PROCESSES = (
    "Launch",
    "Terminate",
    "AddToLoadBalancer",
    "AlarmNotification",
    "AZRebalance",
    "HealthCheck",
    "InstanceRefresh",
    "ReplaceUnhealthy",
    "ScheduledActions",
)
# AWS documents the suspension and not its words; those of users' suspensions are in AWS's examples.
_BY_AWS = "Auto Scaling has been trying to launch instances for over 24 hours without success"


def described(group: Any) -> list[dict[str, str]]:
    """Return SuspendedProcesses as DescribeAutoScalingGroups shows them."""
    return [
        {"ProcessName": process, "SuspensionReason": reason}
        for process, reason in sorted(vars(group).get("suspensions", {}).items())
    ]


def clear(group: Any, _: Iterable[object]) -> None:
    """Let all processes run, as moto does when it makes a group."""
    vars(group)["suspensions"] = {}


def suspend_processes(response: Any) -> ActionResult:
    """Answer SuspendProcesses; who suspended a process first, and when, stays."""
    group = group_named(response)
    for process in _processes(response):
        group.suspensions.setdefault(process, f"User suspended at {utcnow():%Y-%m-%dT%H:%M:%SZ}")
    return EmptyResult()


def resume_processes(response: Any) -> ActionResult:
    """Answer ResumeProcesses, also of what Auto Scaling suspended; a group that is short tries again at once."""
    group = group_named(response)
    for process in _processes(response):
        group.suspensions.pop(process, None)
    auto_scaling.reconcile(group)
    return EmptyResult()


def _processes(response: Any) -> Iterable[str]:
    named: list[str] = response._get_param("ScalingProcesses", [])
    unknown = sorted(set(named) - set(_PROCESSES))
    if unknown:
        raise Refusal("ValidationError", f"Invalid process type(s): {', '.join(unknown)}")
    return named or _PROCESSES


def suspend_launching(request: Mapping[str, Any]) -> Mapping[str, Any]:
    """Let Auto Scaling suspend Launch of a group, as it does after about a day of failed launches."""
    backend = autoscaling_backends[str(request["account"])][str(request["region"])]
    backend.autoscaling_groups[str(request["group"])].suspensions["Launch"] = _BY_AWS
    return {}
