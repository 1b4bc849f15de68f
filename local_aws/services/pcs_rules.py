"""What AWS PCS refuses.

Sources: https://docs.aws.amazon.com/pcs/latest/APIReference/API_CreateCluster.html,
https://docs.aws.amazon.com/pcs/latest/APIReference/API_CreateComputeNodeGroup.html,
https://docs.aws.amazon.com/pcs/latest/APIReference/API_CreateQueue.html and the pages of the user guide named below.
The codes are those of the service; its sentences are not documented, so that these say what is.
"""

import base64
import re
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from moto.ec2.models.instance_types import INSTANCE_TYPES
from moto.iam.models import iam_backends

from local_aws.refusal import Refusal

# https://docs.aws.amazon.com/pcs/latest/userguide/slurm-versions.html
VERSIONS = ("24.11", "25.05", "25.11", "26.05")
# https://docs.aws.amazon.com/pcs/latest/userguide/working-with_clusters_size.html
MOST_NODES = {"SMALL": 32, "MEDIUM": 512, "LARGE": 2048}

# The allow-lists, as sets of their own: what synth refuses must not be the same table.
# https://docs.aws.amazon.com/pcs/latest/userguide/slurm-custom-settings-cluster.html
_CLUSTER = re.compile(
    "Accounting(StorageEnforce|StorageTRES|StoreFlags)|AuthAltParameters|CliFilter(Parameters|Plugins)|DefMemPerCPU|"
    "CommunicationParameters|EnforcePartLimits|FairShareDampeningFactor|FirstJobId|(Task)?(Prolog|Epilog)|JobRequeue|"
    "HealthCheck(Interval|NodeState|Program)|LaunchParameters|Licenses|MetricsType|MinJobAge|OverTimeLimit|"
    "Preempt(ExemptTime|Mode|Parameters|Type)|PrologFlags|RequeueExit(Hold)?|SchedulerParameters|SrunPortRange|"
    "Priority(CalcPeriod|DecayHalfLife|FavorSmall|Flags|MaxAge|UsageResetPeriod)|SelectTypeParameters|TrackWCKey|"
    "PriorityWeight(Age|Assoc|Fairshare|JobSize|Partition|QOS|TRES)|TaskPluginParam|UnkillableStep(Program|Timeout)"
)
# https://docs.aws.amazon.com/pcs/latest/userguide/slurm-custom-settings-cng.html
_GROUP = re.compile("CpuSpecList|Features|Gres|MemSpecLimit|Parameters|RealMemory|Sockets|Weight")
# https://docs.aws.amazon.com/pcs/latest/userguide/slurm-custom-settings-queue.html
_QUEUE = re.compile(
    "(Allow|Deny)(Accounts|Qos)|Default(Time)?|ExclusiveUser|GraceTime|(Max|OverTime)(Time|Limit)|OverSubscribe|"
    "PowerDownOnIdle|PreemptMode|Priority(JobFactor|Tier)|QOS|TRESBillingWeights"
)
# https://docs.aws.amazon.com/pcs/latest/userguide/cgroup-custom-settings.html
_CGROUP = re.compile(
    "Allowed(RAM|Swap)Space|Constrain(Cores|Devices|RAMSpace|SwapSpace)|IgnoreSystemd|Max(RAM|Swap)Percent|"
    "MinRAMSpace|SignalChildrenProcesses"
)
LEVELS = {"cluster": _CLUSTER, "compute node group": _GROUP, "queue": _QUEUE, "cluster's cgroup.conf": _CGROUP}

_ROLE = re.compile(r"arn:[^:]+:iam::\d+:role/(AWSPCS.*|(.*/)?aws-pcs/.*)")


def invalid(message: str) -> Refusal:
    """Return the refusal of a value."""
    return Refusal("ValidationException", message)


def check_settings(level: str, settings: Sequence[Mapping[str, str]]) -> None:
    """Refuse Slurm settings that are not in the list of their level."""
    for setting in settings:
        if not LEVELS[level].fullmatch(setting["parameterName"]):
            raise invalid(f"Slurm custom setting {setting['parameterName']} is not supported for a {level}")
    names = [setting["parameterName"] for setting in settings]
    if len(set(names)) < len(names):
        raise invalid("Slurm custom settings must be given once each")


def check_cluster(given: Mapping[str, Any]) -> None:
    """Refuse a cluster."""
    version, slurm = given["scheduler"]["version"], given.get("slurmConfiguration") or {}
    if version not in VERSIONS:
        raise invalid(f"Scheduler version {version} is not supported")
    if len(given["networking"].get("subnetIds") or []) != 1:
        raise invalid("A cluster has exactly 1 subnet")
    check_settings("cluster", slurm.get("slurmCustomSettings") or [])
    check_settings("cluster's cgroup.conf", slurm.get("cgroupCustomSettings") or [])
    if (slurm.get("accounting") or {}).get("defaultPurgeTimeInDays") == 0:
        raise invalid("defaultPurgeTimeInDays must not be 0")


def check_sizes(scaling: Mapping[str, int]) -> None:
    """Refuse sizes: the least is 0, or all.

    https://docs.aws.amazon.com/pcs/latest/userguide/working-with_cng_create.html
    """
    least, most = scaling["minInstanceCount"], scaling["maxInstanceCount"]
    if least not in {0, most}:
        raise invalid(
            f"minInstanceCount must be 0 or equal to maxInstanceCount, got minInstanceCount {least} and "
            f"maxInstanceCount {most}"
        )


def check_types(names: Collection[str]) -> None:
    """Refuse types that Slurm could not have as one kind of node."""
    kinds = set()
    for name in names:
        facts = INSTANCE_TYPES.get(name)
        if facts is None:
            raise invalid(f"Instance type {name} does not exist")
        gpus = sum(each["Count"] for each in (facts.get("GpuInfo") or {}).get("Gpus", []))
        architectures = tuple(facts["ProcessorInfo"]["SupportedArchitectures"])
        kinds.add((facts["VCpuInfo"]["DefaultVCpus"], gpus, architectures))
    if len(kinds) > 1:
        raise invalid("All instance types of a compute node group must have the same number of vCPUs and GPUs")


def check_template(data: Mapping[str, Any], purchase: str, most: int, block_size: int | None) -> None:
    """Refuse a launch template.

    https://docs.aws.amazon.com/pcs/latest/userguide/working-with_launch-templates_overview.html
    https://docs.aws.amazon.com/pcs/latest/userguide/capacity-blocks-configure-cng.html
    """
    user_data = data.get("UserData")
    if user_data and "multipart/mixed" not in base64.b64decode(str(user_data)).decode(errors="replace")[:200]:
        raise invalid("UserData of the launch template must be a MIME multi-part archive")
    if data.get("SecurityGroups"):
        raise invalid("SecurityGroups of the launch template must be given as SecurityGroupIds")
    if any(not (each.get("Groups") or each.get("SecurityGroupIds")) for each in data.get("NetworkInterfaces") or []):
        raise invalid("Each network interface of the launch template must have security group IDs under Groups")
    if (data.get("Placement") or {}).get("Tenancy", "default") != "default":
        raise invalid("Tenancy of the launch template must be default")
    market = (data.get("InstanceMarketOptions") or {}).get("MarketType")
    if purchase != "CAPACITY_BLOCK":
        return
    target = (data.get("CapacityReservationSpecification") or {}).get("CapacityReservationTarget") or {}
    if market != "capacity-block" or not target.get("CapacityReservationId") or not data.get("InstanceType"):
        raise invalid(
            "The launch template of a compute node group with purchaseOption CAPACITY_BLOCK must have the MarketType "
            "capacity-block, a CapacityReservationId and an InstanceType"
        )
    if block_size is not None and most > block_size:
        raise invalid(f"maxInstanceCount {most} exceeds the size of the Capacity Block, {block_size}")


def check_profile(arn: str, account: str, partition: str) -> None:
    """Refuse an instance profile whose role PCS does not know for one of its own.

    https://docs.aws.amazon.com/pcs/latest/userguide/security-instance-profiles.html
    """
    profiles = iam_backends[account][partition].instance_profiles.values()
    profile = next((each for each in profiles if each.arn == arn), None)
    if profile is None:
        raise invalid(f"The instance profile {arn} does not exist")
    for role in profile.roles:
        if not _ROLE.fullmatch(role.arn):
            raise invalid(f"The role {role.arn} must have a name that starts with AWSPCS or /aws-pcs/ in its path")
        if "pcs:RegisterComputeNodeGroupInstance" not in f"{role.policies}":
            raise invalid(f"The role {role.arn} must allow pcs:RegisterComputeNodeGroupInstance")


def check_gres(slurm: Mapping[str, Any]) -> None:
    """Refuse generic resources without a record behind them.

    https://docs.aws.amazon.com/pcs/latest/userguide/gres-custom-settings.html#gres-custom-settings-constraints
    """
    records = slurm.get("gresCustomSettings") or []
    detects = any(record.get("AutoDetect", "off") != "off" for record in records)
    named = {record.get("Name") for record in records} | ({"gpu"} if detects else set())
    settings = {each["parameterName"]: each["parameterValue"] for each in slurm.get("slurmCustomSettings") or []}
    for resource in filter(None, settings.get("Gres", "").split(",")):
        name = resource.partition(":")[0]
        if name not in named:
            raise invalid(f"Gres names {name}, which no record of gresCustomSettings declares")
