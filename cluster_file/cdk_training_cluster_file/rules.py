"""What one setting of a cluster file demands of another.

Each rule is a function of the whole file as it was read. It checks only what has the right form and stays
silent about the rest, whose form is complained about elsewhere: so one mistake never hides another. What AWS
refuses is asked of the constructs' own tables; here it is said with its place in the file.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from pydantic import TypeAdapter

from cdk_training_cluster.guardrails import place_problems
from cdk_training_cluster.prices.names import is_budget_name, wrong_name
from cdk_training_cluster.validation.rule import SettingsError
from cdk_training_cluster_file import fields
from cdk_training_cluster_file.budget import BudgetSettings
from cdk_training_cluster_file.node_group_rules import (
    node_groups_are_what_aws_takes,
    the_orchestrator_is_one_that_can_be_made,
)
from cdk_training_cluster_file.orchestrators.hyperpod import EksClusterArn
from cdk_training_cluster_file.parts import TYPE, ZONE, Complaint, Part, beside_its_place, entries, formed, valid
from cdk_training_cluster_file.problems import Location
from cdk_training_cluster_file.regions import REGION, partition_of
from cdk_training_cluster_file.source import Value
from cdk_training_cluster_file.storage_rules import (
    an_existing_file_system_stays_as_it_is,
    datasets_are_what_fsx_takes,
    datasets_need_a_file_system,
    exported_checkpoints_need_a_file_system,
    the_file_system_is_what_fsx_makes,
)

_ACCOUNT: TypeAdapter[str] = TypeAdapter(fields.AccountId)
_EKS: TypeAdapter[str] = TypeAdapter(EksClusterArn)
_KEY: TypeAdapter[str] = TypeAdapter(fields.KeyArn)
_SCRIPT: TypeAdapter[str] = TypeAdapter(fields.ScriptName)


def complaints(file: Part, directory: Path) -> Iterator[Complaint]:
    """Say what contradicts something else in a file, each with its place.

    Args:
        file: The file's values, of whatever form.
        directory: Where the file lies; scripts are relative to it.
    """
    for rule in RULES:
        yield from rule(file)
    yield from scripts_exist(file, directory)


def the_subnet_is_in_the_zone_of_the_cluster(file: Part) -> Iterator[Complaint]:
    """EFA traffic and a file system's clients do not leave a zone."""
    network = file.get("network")
    cluster = formed(file, "availability_zone", ZONE)
    subnet = formed(network, "availability_zone", ZONE) if isinstance(network, Mapping) else None
    if cluster and subnet and cluster != subnet:
        yield (
            ("network", "availability_zone"),
            f"the subnet is in {subnet} and the cluster in {cluster}; name a subnet in {cluster}, or set the "
            f"cluster's availability_zone to {subnet}",
        )


def a_range_is_for_a_network_that_is_made(file: Part) -> Iterator[Complaint]:
    """An existing VPC keeps its range."""
    if "vpc_cidr" in file and file.get("network") is not None:
        yield (
            ("vpc_cidr",),
            "vpc_cidr and network exclude each other: an existing VPC has its own range; leave one of them out",
        )


def what_is_named_is_in_the_region_of_the_cluster(file: Part) -> Iterator[Complaint]:
    """No service uses a key, a layer, a topic, a cluster, a plan or a reservation of another region."""
    zone = formed(file, "availability_zone", ZONE)
    for place, what, partition, region in _regional(file):
        if zone and not re.fullmatch(rf"{region}(?:-[a-z]+-[0-9]+)?[a-z]", zone):
            yield (
                place,
                f"the {what} is in {region}, and this training cluster is in {zone}; name one of the zone's region",
            )
        elif zone and partition != partition_of(region):
            yield (
                place,
                f"the ARN of the {what} is of the partition {partition}, and {region} is in {partition_of(region)}; "
                f"write arn:{partition_of(region)}:…",
            )


def keys_are_in_the_account_of_the_cluster(file: Part) -> Iterator[Complaint]:
    """The statements of `training-cluster key-policy` let roles of the cluster's account use the key."""
    cluster = formed(file, "account", _ACCOUNT)
    for place, account in _keys(file):
        if cluster and account != cluster:
            yield place, f"the key is in the account {account} and the cluster in {cluster}; name a key of {cluster}"


def the_eks_cluster_is_in_the_account_of_the_cluster(file: Part) -> Iterator[Complaint]:
    """HyperPod's nodes join an EKS cluster in their own VPC, which is in one account."""
    orchestrator = file.get("orchestrator")
    hyperpod = orchestrator.get("hyperpod") if isinstance(orchestrator, Mapping) else None
    arn = formed(hyperpod, "eks_cluster_arn", _EKS) if isinstance(hyperpod, Mapping) else None
    account = formed(file, "account", _ACCOUNT)
    owner = arn.split(":")[4] if arn else account
    if account and account != owner:
        yield (
            ("orchestrator", "hyperpod", "eks_cluster_arn"),
            f"the EKS cluster is in the account {owner} and the cluster in {account}; name one of {account}",
        )


def access_logs_need_a_bucket_that_is_made_here(file: Part) -> Iterator[Complaint]:
    """Nothing here changes a bucket that exists already."""
    if file.get("access_logs") and all("bucket" in dataset for _, dataset in entries(file, "datasets")):
        yield (
            ("access_logs",),
            "must have a bucket that the foundation makes; leave it out, or leave out a dataset's bucket",
        )


def facts_are_told_once(file: Part) -> Iterator[Complaint]:
    """A name stands for the facts of one type."""
    seen: dict[str, int] = {}
    for at, facts in entries(file, "instance_type_facts"):
        name = formed(facts, "name", TYPE)
        if name in seen:
            yield (
                ("instance_type_facts", at, "name"),
                f'"{name}" is already the name of instance_type_facts[{seen[name]}]; give each its own name',
            )
        elif name:
            seen[name] = at


def addresses_are_listed_once(file: Part) -> Iterator[Complaint]:
    """A topic has one subscription for an address."""
    alerts = file.get("alerts")
    emails = alerts.get("emails") if isinstance(alerts, Mapping) else None
    if isinstance(emails, list):
        for at, address in enumerate(emails):
            if isinstance(address, str) and address in emails[:at]:
                yield ("alerts", "emails", at), f'"{address}" is listed twice; leave one of them'


def the_budget_can_be_watched(file: Part) -> Iterator[Complaint]:
    """What the library says of a budget whose single settings are right, and of where the cluster is."""
    budget, zone = file.get("budget"), formed(file, "availability_zone", ZONE)
    if not isinstance(budget, Mapping):
        return
    region = re.match(REGION, zone) if zone else None
    for problem in place_problems(region[0]) if region else []:
        yield ("budget",), problem.removeprefix("budget ")
    prices, types = (
        budget.get("prices"),
        [formed(facts, "name", TYPE) for _, facts in entries(file, "instance_type_facts")],
    )
    for name in prices if isinstance(prices, Mapping) else ():
        if not is_budget_name(name, [each for each in types if each]):
            yield ("budget", "prices", name), wrong_name(name, of_budget=True)
    settings = valid(BudgetSettings, budget)
    try:
        _ = settings and settings.for_constructs(emails=settings.emails or ())
    except SettingsError as error:
        yield from ((("budget", *problem.setting), beside_its_place(problem)) for problem in error.problems)


def scripts_exist(file: Part, directory: Path) -> Iterator[Complaint]:
    """What shall run on a node has to be there to be uploaded."""
    for at, group in entries(file, "node_groups"):
        for key in ("scripts_before", "scripts_after"):
            scripts = group.get(key)
            for place, script in enumerate(scripts if isinstance(scripts, list) else []):
                name = formed({"name": script}, "name", _SCRIPT)
                if name is not None and not _is_file(directory / name):
                    yield ("node_groups", at, key, place), f'there is no file "{name}" beside this one'


def _is_file(path: Path) -> bool:
    try:
        return path.is_file()
    except OSError:  # the name is longer than the system allows
        return False


RULES: tuple[Callable[[Part], Iterator[Complaint]], ...] = (
    the_subnet_is_in_the_zone_of_the_cluster,
    datasets_need_a_file_system,
    a_range_is_for_a_network_that_is_made,
    what_is_named_is_in_the_region_of_the_cluster,
    keys_are_in_the_account_of_the_cluster,
    the_eks_cluster_is_in_the_account_of_the_cluster,
    access_logs_need_a_bucket_that_is_made_here,
    facts_are_told_once,
    addresses_are_listed_once,
    node_groups_are_what_aws_takes,
    the_orchestrator_is_one_that_can_be_made,
    an_existing_file_system_stays_as_it_is,
    the_file_system_is_what_fsx_makes,
    datasets_are_what_fsx_takes,
    exported_checkpoints_need_a_file_system,
    the_budget_can_be_watched,
)
"""All that needs nothing but the file's own text."""


def _regional(file: Part) -> Iterator[tuple[Location, str, str, str]]:
    """Return the ARNs of what a cluster can only use in its own region: place, kind, partition and region of each."""
    others: list[tuple[Location, str]] = [(place, "key") for place, _ in _keys(file)]
    others += [
        (("powertools_layer_arn",), "layer"),
        (("alerts", "backup_topic_arn"), "backup topic"),
        (("orchestrator", "hyperpod", "eks_cluster_arn"), "EKS cluster"),
    ]
    for at, group in entries(file, "node_groups"):
        capacity: Location = ("node_groups", at, "capacity")
        others.append(((*capacity, "training_plan", "arn"), "training plan"))
        bought = group.get("capacity")
        turns = bought.get("prioritized") if isinstance(bought, Mapping) else None
        for name in ("reservations", "capacity_blocks"):
            named = turns.get(name) if isinstance(turns, Mapping) else None
            count = len(named) if isinstance(named, list) else 0
            others += [((*capacity, "prioritized", name, each), "reservation") for each in range(count)]
    for place, what in others:
        found = re.match(r"arn:([a-z-]+):[a-z0-9-]+:([a-z0-9-]+):", str(_value(file, place)))
        if found:
            yield place, what, found[1], found[2]


def _value(file: Part, place: Location) -> Value:
    value: Value = dict(file)
    for step in place:
        if isinstance(value, dict):
            value = value.get(str(step))
        elif isinstance(value, list) and isinstance(step, int):
            value = value[step]
        else:
            return None
    return value


def _keys(file: Part) -> Iterator[tuple[Location, str]]:
    """Go through the KMS keys, each with its place and account."""
    places: tuple[tuple[Location, Value], ...] = (((), dict(file)), (("file_system",), file.get("file_system")))
    for place, part in places:
        key = formed(part, "encryption_key", _KEY) if isinstance(part, Mapping) else None
        if key is not None:
            yield (*place, "encryption_key"), key.split(":")[4]
