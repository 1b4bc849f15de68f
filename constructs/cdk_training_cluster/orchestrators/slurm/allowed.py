"""The Slurm settings that AWS PCS takes, by what they are given to; it refuses every other one.

Source: https://docs.aws.amazon.com/pcs/latest/userguide/slurm-custom-settings.html
"""

from collections.abc import Callable, Collection, Iterator, Mapping
from difflib import get_close_matches
from typing import Final

from cdk_training_cluster.validation.checks import shown

_SOURCE: Final = "https://docs.aws.amazon.com/pcs/latest/userguide/slurm-custom-settings.html"


def _names(text: str) -> frozenset[str]:
    return frozenset(text.split())


# https://docs.aws.amazon.com/pcs/latest/userguide/slurm-custom-settings-cluster.html
CLUSTER_SETTINGS: Final = _names("""
    AccountingStorageEnforce AccountingStorageTRES AccountingStoreFlags AuthAltParameters CliFilterParameters
    CliFilterPlugins CommunicationParameters DefMemPerCPU Epilog EnforcePartLimits FairShareDampeningFactor FirstJobId
    HealthCheckInterval HealthCheckNodeState HealthCheckProgram JobRequeue LaunchParameters Licenses MetricsType
    MinJobAge OverTimeLimit PreemptExemptTime PreemptMode PreemptParameters PreemptType PriorityCalcPeriod
    PriorityDecayHalfLife PriorityFavorSmall PriorityFlags PriorityMaxAge PriorityUsageResetPeriod PriorityWeightAge
    PriorityWeightAssoc PriorityWeightFairshare PriorityWeightJobSize PriorityWeightPartition PriorityWeightQOS
    PriorityWeightTRES Prolog PrologFlags RequeueExit RequeueExitHold SchedulerParameters SelectTypeParameters
    SrunPortRange TaskEpilog TaskPluginParam TaskProlog TrackWCKey UnkillableStepProgram UnkillableStepTimeout
    """)

# https://docs.aws.amazon.com/pcs/latest/userguide/slurm-custom-settings-cng.html
NODE_GROUP_SETTINGS: Final = _names("CpuSpecList Features Gres MemSpecLimit Parameters RealMemory Sockets Weight")

# https://docs.aws.amazon.com/pcs/latest/userguide/slurm-custom-settings-queue.html
QUEUE_SETTINGS: Final = _names("""
    AllowAccounts AllowQos Default DefaultTime DenyAccounts DenyQos ExclusiveUser GraceTime MaxTime OverSubscribe
    OverTimeLimit PowerDownOnIdle PreemptMode PriorityJobFactor PriorityTier QOS TRESBillingWeights
    """)

_LEVELS: Final[Mapping[str, Collection[str]]] = {
    "the cluster": CLUSTER_SETTINGS,
    "a node group": NODE_GROUP_SETTINGS,
    "a queue": QUEUE_SETTINGS,
}

_OWN: Final[Mapping[str, str]] = {
    "Prolog": "the library's own verifies the node: add a step with scripts_after of the node group",
    "Epilog": "the library's own removes temporary files of users and checks the devices: add a step with TaskEpilog",
    "HealthCheckProgram": "the library's own drains a node where a file asks for it or devices are missing",
    "HealthCheckInterval": "use health_check_interval, health_check_minutes in a cluster file",
    "HealthCheckNodeState": "the library's own health check runs on nodes in every state",
    "JobRequeue": "with another value no job of a lost node runs again: give --no-requeue with a job that must not",
    "RequeueExit": "use requeue_exit_codes",
    "PreemptType": "use preemption of a queue",
    "PreemptMode": "use preemption of a queue",
    "PriorityTier": "use priority_tier of the queue",
    "GraceTime": "use grace_time of the queue, grace_minutes in a cluster file",
    "Default": "the first queue is the default one",
    "MaxTime": "use max_time of the queue, max_minutes in a cluster file",
    "Gres": "it follows from the instance types and gpu_sharing of the node group",
}
"""What a setting of the library's own stands for, and what to write instead."""


def settings_of(level: str) -> Callable[[str, object], Iterator[str]]:
    """Return the check of settings that a user adds.

    Args:
        level: What they are given to: `the cluster`, `a node group` or `a queue`.
    """

    def check(setting: str, value: object) -> Iterator[str]:
        if not isinstance(value, Mapping) or not all(
            isinstance(each, str) for pair in value.items() for each in pair
        ):
            yield f"{setting} must be a mapping of Slurm's names to texts, such as {{'MinJobAge': '600'}}, got " + (
                shown(value)
            )
            return
        # https://slurm.schedmd.com/slurm.conf.html#OPT_Weight
        if not value.get("Weight", "0").isdecimal():
            yield f"{setting} must give Weight as a whole number, such as '10', got {shown(value['Weight'])}"
        for name in value:
            problem = _problem_of(name, level)
            if problem:
                yield f"{setting} must name settings that AWS PCS takes for {level}, got {name}: {problem}"

    return check


def _problem_of(name: str, level: str) -> str:
    allowed = _LEVELS[level]
    if name in _OWN:
        return _OWN[name]
    if name in allowed:
        return ""
    elsewhere = next((other for other, names in _LEVELS.items() if name in names), None)
    if elsewhere is not None:
        return f"it is a setting of {elsewhere}"
    by_lower = {each.lower(): each for each in sorted(allowed)}
    near = get_close_matches(name.lower(), by_lower, n=3, cutoff=0.5)
    if near:
        return f"nearest are {', '.join(by_lower[each] for each in near)}"
    return f"AWS PCS sets it itself, or Slurm has none of that name; those that it takes are in {_SOURCE}"
