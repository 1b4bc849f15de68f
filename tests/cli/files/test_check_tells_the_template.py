"""Each statement of `training-cluster check` is compared with the templates: none can contradict them."""

import re
from collections.abc import Callable, Mapping
from datetime import timedelta
from pathlib import Path
from typing import NamedTuple

import pytest
from typer.testing import CliRunner

from cdk_training_cluster_cli.main import training_cluster
from cluster_contract.billing import BILLING_VARIABLE, BillingFunctionSettings
from cluster_contract.checkpoints import CheckpointFunctionSettings
from cluster_contract.codec import decode
from cluster_contract.health_settings import HealthFunctionSettings
from cluster_contract.hydration import HydrationFunctionSettings
from cluster_contract.idle import IdleFunctionSettings, SignalKind
from cluster_contract.power import PowerFunctionSettings
from cluster_contract.spend import OnExceed, SpendFunctionSettings
from examples import PROJECT, SWEPT_EXAMPLES
from synthesized_facts import Facts

_RUN = CliRunner(env={"COLUMNS": "1000"})
_ORCHESTRATORS = {
    "Amazon EKS": "AWS::EKS::Cluster",
    "AWS PCS": "AWS::PCS::Cluster",
    "AWS Batch": "AWS::Batch::JobQueue",
    "SageMaker HyperPod on EKS": "AWS::SageMaker::Cluster",
    "SageMaker HyperPod on Slurm": "AWS::SageMaker::Cluster",
}
_HOST = {SignalKind.CPU, SignalKind.NETWORK}


class _Statement(NamedTuple):
    """A statement, and whether the templates say so.

    Attributes:
        form: Its form.
        holds: Whether it holds.
    """

    form: str
    holds: Callable[[Facts, re.Match[str]], bool]


def _power(facts: Facts) -> PowerFunctionSettings:
    return facts.settings("cluster_power", PowerFunctionSettings)  # type: ignore[no-any-return]


def _numbers(text: str) -> list[float]:
    return [float(each.replace(",", "")) for each in re.findall(r"\(?([\d,.]+) USD", text)]


def _percent(text: str) -> list[float]:
    return [float(each) for each in re.findall(r"([\d.]+) %", text)]


def _named(facts: Facts, said: re.Match[str]) -> bool:
    zones = {each["AvailabilityZone"] for each in facts.made("AWS::EC2::Subnet")}
    return _power(facts).cluster == said[1] and (not zones or said[2] in zones)


def _counted(facts: Facts, said: re.Match[str]) -> bool:
    types = [each.split(" ")[0].rstrip(",") for each in said[3].split("; ")]
    return _power(facts).groups[said[1]].count == int(said[2]) and all(f'"{each}"' in facts.text for each in types)


def _row(facts: Facts, said: re.Match[str]) -> bool:
    name, count, _, _, efa, bought, placement = re.split(r"\s{2,}", said[0].strip())
    way, _, pool = bought.partition("; ")
    devices = 0 if efa == "none" else int(efa.partition(",")[0])
    return (
        _power(facts).groups[name].count == int(count)
        and (name in facts.instance_groups or devices in facts.efa_counts(name))
        and way.startswith(facts.bought(name))
        and placement == facts.placement(name)
        and (not pool or pool == f"warm pool of {facts.warm_nodes(name)}")
    )


def _more_types(facts: Facts, said: re.Match[str]) -> bool:
    return f'"{said[1]}"' in facts.text


def _idle(facts: Facts, group: str | None, said: re.Match[str]) -> bool:
    settings: IdleFunctionSettings = facts.settings("cluster_idle", IdleFunctionSettings)
    policy = settings.policies[0 if group is None else settings.groups[group].policy]
    signals = {settings.signals[index].kind for index in policy.signals}
    others = {str(kind) for kind in signals - _HOST}
    told = set(said["signals"].split(" and ")) if said["signals"] else set()
    return (
        policy.window == timedelta(minutes=int(said["window"]))
        and policy.dry_run == (said["warning"] is None)
        and (policy.dry_run or policy.warning == timedelta(minutes=int(said["warning"])))
        and len(others) == len(told)
        and (said["alone"] is None or not signals)
    )


_IDLE = (
    r"warned after (?P<window>\d+) minutes, (?:stopped (?P<warning>\d+) minutes later|not stopped \(dry run\))"
    r"(?:, each by itself)?(?:; (?P<signals>.+) must agree)?(?P<alone>; accelerators alone say it)?"
)


def _health(facts: Facts) -> HealthFunctionSettings:
    return facts.settings("cluster_health", HealthFunctionSettings)  # type: ignore[no-any-return]


def _repaired(facts: Facts, said: re.Match[str]) -> bool:
    policy = _health(facts).policy
    return policy.act and (policy.max_repairs, policy.window) == (int(said[1]), timedelta(hours=float(said[2])))


def _status_checks(facts: Facts, _: re.Match[str]) -> bool:
    periods = {int(each["HealthCheckGracePeriod"]) for each in facts.of("AWS::AutoScaling::AutoScalingGroup")}
    return periods == {0}


def _eks_repairs(facts: Facts, said: re.Match[str]) -> bool:
    system = [
        each
        for each in facts.of("AWS::EKS::Nodegroup")
        if each["Labels"]["cdk-training-cluster/node-group"] == "system"
    ]
    sent = {option for group in _power(facts).groups.values() if group.owner for option in group.owner.options}
    repairs = said[1] == "reboots or replaces broken nodes"
    off = "repair=off" in sent or not all(each["NodeRepairConfig"]["Enabled"] for each in system)
    return repairs != off


def _hyperpod_repairs(facts: Facts, said: re.Match[str]) -> bool:
    (cluster,) = facts.of("AWS::SageMaker::Cluster")
    return bool(cluster["NodeRecovery"] == "Automatic") == (said[1] == "reboots or replaces broken nodes")


def _orchestrator(facts: Facts, said: re.Match[str]) -> bool:
    found = facts.of(_ORCHESTRATORS[said[1]])
    on_eks = "Eks" in (found[0].get("Orchestrator") or {}) if found else False
    return bool(found) and on_eks == (said[1] == "SageMaker HyperPod on EKS")


def _pcs(facts: Facts, said: re.Match[str]) -> bool:
    (cluster,) = facts.of("AWS::PCS::Cluster")
    return (cluster["Scheduler"]["Version"], cluster["Size"]) == (said[1], said[2])


def _queue(facts: Facts, said: re.Match[str]) -> bool:
    queues = {each["Name"]: len(each["ComputeNodeGroupConfigurations"]) for each in facts.of("AWS::PCS::Queue")}
    return queues.get(said[1]) == len(said[2].split(", "))


def _own_nodes(facts: Facts, said: re.Match[str]) -> bool:
    group = facts.instance_groups[said[1]]
    return (group["InstanceCount"], group["InstanceType"]) == (1, said[2])


def _dollars(facts: Facts, said: re.Match[str]) -> bool:
    *alarms, month = _numbers(said[0])
    spend: SpendFunctionSettings = facts.settings("cluster_spend", SpendFunctionSettings)
    return float(spend.monthly_usd) == month and facts.thresholds.issuperset(alarms)


def _alarmed(facts: Facts, said: re.Match[str]) -> bool:
    return facts.thresholds.issuperset(_numbers(said[0]))


def _exceeded(facts: Facts, said: re.Match[str]) -> bool:
    spend: SpendFunctionSettings = facts.settings("cluster_spend", SpendFunctionSettings)
    effects = {"node groups": OnExceed.STOP, "no new": OnExceed.NO_NEW_NODES, "the alert": OnExceed.NOTIFY}
    expected = next(effect for start, effect in effects.items() if said[1].startswith(start))
    return spend.on_exceed is expected


def _billing(facts: Facts) -> BillingFunctionSettings:
    return decode(BillingFunctionSettings, facts.environment("billing_alarms") or {}, BILLING_VARIABLE)


def _billing_alarms(facts: Facts, said: re.Match[str]) -> bool:
    billing, *_, month = _billing(facts), *_numbers(said[0])
    count = len(billing.thresholds) * (1 + len(billing.services)) * (1 + len(billing.accounts))
    told = (_percent(said[0]), int(said[1]), month)
    return told == (list(map(float, billing.thresholds)), count, float(billing.monthly_usd))


def _services(facts: Facts, said: re.Match[str]) -> bool:
    return re.split(", | and ", said[1]) == ["in total", *_billing(facts).services]


def _notified(facts: Facts, said: re.Match[str]) -> bool:
    return said[1] == (", ".join(_billing(facts).emails) or "no address")


def _lustre(facts: Facts, said: re.Match[str]) -> bool:
    (files,) = facts.made("AWS::FSx::FileSystem")
    lustre = files["LustreConfiguration"]
    return (
        files["StorageCapacity"] == int(said[1].replace(",", ""))
        and lustre["PerUnitStorageThroughput"] == int(said[2])
        and bool(lustre.get("EfaEnabled")) == bool(said[3])
        and said[4] in facts.text
    )


def _linked(facts: Facts, said: re.Match[str]) -> bool:
    links = facts.made("AWS::FSx::DataRepositoryAssociation")
    return any(
        said[2].endswith(each["FileSystemPath"].rstrip("/")) and said[1] in str(each["DataRepositoryPath"])
        for each in links
    )


def _checkpoints(facts: Facts, said: re.Match[str]) -> bool:
    settings: CheckpointFunctionSettings = facts.settings("cluster_checkpoints", CheckpointFunctionSettings)
    where = settings.place.directory or "a directory bucket of S3 Express One Zone"
    return (where, settings.max_work) == (said[1], timedelta(minutes=float(said[2])))


def _dataset(facts: Facts, said: re.Match[str]) -> bool:
    settings: HydrationFunctionSettings = facts.settings("cluster_hydration", HydrationFunctionSettings)
    dataset = next(each for each in settings.datasets if each.path == said[1])
    return dataset.preload == ("preloaded by the nodes" in said[2])


def _schedule(facts: Facts, said: re.Match[str]) -> bool:
    schedule = _power(facts).schedule(said[1])
    return schedule is not None and str(schedule) == said[2]


def _without(package: str) -> Callable[[Facts, re.Match[str]], bool]:
    return lambda facts, _: facts.environment(package) is None


STATEMENTS: tuple[_Statement, ...] = (
    _Statement(r"([\w-]+) in ([a-z]+-[a-z]+-\d[a-z])", _named),
    # Prices are those of the price book; the counts beneath are the template's.
    _Statement(r"Price at On-Demand list prices while all nodes run: .+", lambda *_: True),
    _Statement(r"  ([\w-]+): (\d+) x (?!ml\.m5)(.+(?: at \$|, whose price).+|.+ at \$.+)", _counted),
    _Statement(r" Node group +Nodes +Type +Accelerators +EFA +Bought +Placement *", lambda *_: True),
    _Statement(r" ─+", lambda *_: True),
    _Statement(r" [\w-]+ +\d+ +[a-z0-9-]+\.\w+ .+", _row),
    _Statement(r" {9,}([a-z0-9-]+\.\w+) .+", _more_types),
    _Statement(r"Jobs run on (.+)", _orchestrator),
    _Statement(r"  Slurm ([\d.]+) on AWS PCS, controller size (\w+)", _pcs),
    _Statement(r"  queue ([\w-]+): (.+)", _queue),
    _Statement(r"  (controller|login): 1 x (ml\.[\w.]+)", _own_nodes),
    _Statement(r"  EKS (reboots or replaces broken nodes|repairs no broken nodes)", _eks_repairs),
    _Statement(r"  HyperPod (reboots or replaces broken nodes|repairs no broken nodes)", _hyperpod_repairs),
    _Statement(r"Schedule of ([\w-]+): (.+); open about \d+ hours a month", _schedule),
    _Statement(r"Idle nodes: never stopped", _without("cluster_idle")),
    _Statement(rf"Idle nodes: {_IDLE}", lambda facts, said: _idle(facts, None, said)),
    _Statement(rf"  (?P<group>[\w-]+): {_IDLE}", lambda facts, said: _idle(facts, said["group"], said)),
    _Statement(
        r"Broken nodes: reported, and neither rebooted nor replaced by the health function",
        lambda facts, _: not _health(facts).policy.act,
    ),
    _Statement(
        r"Broken nodes: drained, then rebooted or replaced, at most (\d+) of a node group in ([\d.]+) hours",
        _repaired,
    ),
    _Statement(r"  Auto Scaling replaces nodes that fail EC2's status checks", _status_checks),
    _Statement(r"Cluster's dollars: alarms at .+ of a month's .+", _dollars),
    _Statement(r"  when the month is forecast to reach .+", _alarmed),
    _Statement(r"  above .+ USD an hour", _alarmed),
    _Statement(r"  at the whole budget: (.+)", _exceeded),
    _Statement(r"Billing alarms: none \(no budget\)", _without("billing_alarms")),
    _Statement(r"Billing alarms: (\d+) in us-east-1, .+", _billing_alarms),
    _Statement(r"  of the whole account; in a management account, of the organization: (.+)", _services),
    _Statement(r"  notify (.+)", _notified),
    _Statement(
        r"AWS budget: of the cluster's own bill, up to a day late; notifies at .+",
        lambda facts, said: _percent(said[0]) == facts.shares("ACTUAL"),
    ),
    _Statement(
        r"  when AWS forecasts that the month reaches .+",
        lambda facts, said: _percent(said[0]) == facts.shares("FORECASTED"),
    ),
    _Statement(
        r"  counts nothing until the cost allocation tag is active: .+ TagKey=(\S+),Status=Active",
        lambda facts, said: said[1] in str(facts.of("AWS::Budgets::Budget")[0]["Budget"]["CostFilters"]),
    ),
    _Statement(
        r"No file system",
        lambda facts, _: not facts.made("AWS::FSx::FileSystem") and facts.environment("cluster_hydration") is None,
    ),
    _Statement(r"FSx for Lustre of (?:\w+, )?([\d,]+) GiB at (\d+) MB/s/TiB( with EFA)?, mounted at (\S+)", _lustre),
    _Statement(r"  s3://[^/]*/(\S*) appears at (\S+)", _linked),
    _Statement(r"Checkpoints: in (.+); an alarm after ([\d.]+) minutes of work without a new one", _checkpoints),
    _Statement(r"Dataset (\S+): (.*)", _dataset),
)
"""Every form of a statement, with what it is compared with."""

# What no example says.
_MORE: Mapping[str, str] = {
    "health": "schedule: {windows: [weekdays 08:00-20:00 Europe/Berlin]}\n"
    "health: {act: true, max_repairs: 2}\nidle: {off: true}\n",
    "eks": "orchestrator: {eks: {control_plane_zone: us-east-1a, node_repair: false}}\n"
    "checkpoints: {express: {zone_id: use1-az4}}\nidle: {dry_run: true}\n",
    "hyperpod": "orchestrator: {hyperpod: {node_recovery: none}}\n",
}
_FILE = """\
name: {}
availability_zone: us-east-1b
node_groups: [{{name: workers, instance_types: [p5.48xlarge], count: 2, image: latest}}]
{}"""


def _told(file: Path) -> list[str]:
    ended = _RUN.invoke(training_cluster, ["check", str(file)])
    assert ended.exit_code == 0, ended.output
    return [line for line in ended.stdout.splitlines() if line and not line.startswith("warning: ")]


def _check(file: Path, facts: Facts) -> None:
    for line in _told(file):
        forms = [(each, said) for each in STATEMENTS if (said := re.fullmatch(each.form, line))]
        assert len(forms) == 1, f"{line!r} has the forms {[each.form for each, _ in forms]}"
        ((statement, said),) = forms
        assert statement.holds(facts, said), line


@pytest.mark.parametrize("example", SWEPT_EXAMPLES)
def test_check_says_of_an_example_what_its_templates_say(example: str, assembly_of: Callable[[Path], Path]) -> None:
    _check(PROJECT / example, Facts(assembly_of(PROJECT / example)))


@pytest.mark.parametrize("name", _MORE)
def test_check_says_of_other_settings_what_the_templates_say(
    name: str, assembly_of: Callable[[Path], Path], tmp_path: Path
) -> None:
    file = tmp_path / f"{name}.yaml"
    file.write_text(_FILE.format(name, _MORE[name]))
    _check(file, Facts(assembly_of(file)))


def test_a_statement_that_contradicts_a_template_is_found(assembly_of: Callable[[Path], Path]) -> None:
    facts = Facts(assembly_of(PROJECT / "clusters/base-pod.yaml"))
    wrong = (
        "  EKS repairs no broken nodes",
        "Idle nodes: warned after 61 minutes, stopped 30 minutes later",
        "Jobs run on AWS Batch",
        "No file system",
        " workers         8  p4de.24xlarge  8 x A100, 80 GiB  3, 400 Gbps  on demand  cluster  ",
        " workers         8  p4de.24xlarge  8 x A100, 80 GiB  4, 400 Gbps  Spot       cluster  ",
    )
    for line in wrong:
        held = [each.holds(facts, said) for each in STATEMENTS if (said := re.fullmatch(each.form, line))]
        assert held == [False], line
