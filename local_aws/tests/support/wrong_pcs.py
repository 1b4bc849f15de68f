"""Templates that AWS PCS refuses: the change to the good one, words of the refusal, and the rule of synth."""

from collections.abc import Callable
from typing import Any

from local_aws_scene import Template
from pcs_scene import cgroup_settings, settings

Change = Callable[[dict[str, Any]], object]


def _change(resource: str, path: str, value: Any) -> Change:
    def change(resources: dict[str, Any]) -> None:
        *above, last = path.split(".")
        place = resources[resource]["Properties"]
        for key in above:
            place = place[key]
        place[last] = value

    return change


def _sizes(least: int, most: int) -> Change:
    return _change("Nodes", "ScalingConfiguration", {"MinInstanceCount": least, "MaxInstanceCount": most})


_TWO = [{"InstanceType": "g6.48xlarge"}, {"InstanceType": "g6.24xlarge"}]
_TOO_LONG = "Member must have length less than or equal to 25"
_DATA = "LaunchTemplateData"

WRONG_PCS: dict[str, tuple[Change, str, str]] = {
    "an old Slurm": (_change("Slurm", "Scheduler.Version", "23.11"), "23.11 is not supported", "pcsVersion"),
    "a setting that PCS owns": (
        _change("Slurm", "SlurmConfiguration", settings(SlurmdTimeout="60")),
        "SlurmdTimeout is not supported for a cluster",
        "",
    ),
    "a setting of cgroup.conf that PCS owns": (
        _change("Slurm", "SlurmConfiguration.CgroupCustomSettings", cgroup_settings(CgroupPlugin="cgroup/v2")),
        "CgroupPlugin is not supported for a cluster's cgroup.conf",
        "",
    ),
    "a setting of cgroup.conf given twice": (
        _change(
            "Slurm",
            "SlurmConfiguration.CgroupCustomSettings",
            cgroup_settings(ConstrainCores="yes") + cgroup_settings(ConstrainCores="no"),
        ),
        "must be given once each",
        "",
    ),
    "a setting of another level": (
        _change("Nodes", "SlurmConfiguration", settings(PriorityTier="10")),
        "PriorityTier is not supported for a compute node group",
        "",
    ),
    "a setting that a queue has not": (
        _change("Queue", "SlurmConfiguration", settings(Weight="10")),
        "Weight is not supported for a queue",
        "",
    ),
    "records that are purged at once": (
        _change("Slurm", "SlurmConfiguration.Accounting", {"Mode": "STANDARD", "DefaultPurgeTimeInDays": 0}),
        "defaultPurgeTimeInDays must not be 0",
        "",
    ),
    "a size between 0 and all": (_sizes(1, 4), "must be 0 or equal to maxInstanceCount", ""),
    "a long name": (
        _change("Nodes", "Name", "w" * 26),
        _TOO_LONG,
        "",
    ),
    "a long name of a queue": (
        _change("Queue", "Name", "q" * 26),
        _TOO_LONG,
        "",
    ),
    "types that differ": (
        _change("Nodes", "InstanceConfigs", _TWO),
        "must have the same number of vCPUs and GPUs",
        "",
    ),
    "plain user data": (
        _change("Launch", f"{_DATA}.UserData", {"Fn::Base64": "#!/bin/bash"}),
        "must be a MIME multi-part archive",
        "pcsUserData",
    ),
    "an interface without groups": (
        _change("Launch", f"{_DATA}.NetworkInterfaces", [{"DeviceIndex": 0}]),
        "must have security group IDs under Groups",
        "pcsInterfaceGroups",
    ),
    "dedicated tenancy": (
        _change("Launch", f"{_DATA}.Placement", {"Tenancy": "dedicated"}),
        "Tenancy of the launch template must be default",
        "pcsTenancy",
    ),
    "a block that the template does not name": (
        _change("Nodes", "PurchaseOption", "CAPACITY_BLOCK"),
        "must have the MarketType capacity-block",
        "",
    ),
    "a resource without a record": (
        _change("Nodes", "SlurmConfiguration", settings(Gres="mps:32")),
        "Gres names mps, which no record",
        "pcsGres",
    ),
    "a role of another path": (
        lambda resources: resources["NodeRole"]["Properties"].pop("Path"),
        "must have a name that starts with AWSPCS or /aws-pcs/",
        "pcsRole",
    ),
    "a role that may not join": (
        lambda resources: resources["NodeRole"]["Properties"].pop("Policies"),
        "must allow pcs:RegisterComputeNodeGroupInstance",
        "pcsRole",
    ),
}


def changed(template: Template, change: Change) -> Template:
    """Return the template with the change made in it."""
    change(template["Resources"])
    return template
