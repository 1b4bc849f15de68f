"""The text of a new cluster file: each setting with its comment, and optional parts commented out."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

import yaml

from cdk_training_cluster import InstanceTypeInfo
from cdk_training_cluster.guardrails import place_problems
from cdk_training_cluster.instance_types import instance_type_info
from cdk_training_cluster.nodes.images import public_image
from cdk_training_cluster.storage.choosing import StorageOption, choose_storage
from cdk_training_cluster_cli.prepare.init.offers import accelerators
from cdk_training_cluster_file.budget import BudgetSettings
from cdk_training_cluster_file.fields import LATEST
from cdk_training_cluster_file.model import AlertSettings, ClusterFile, DatasetSettings, FileSystemSettings
from cdk_training_cluster_file.model_base import Settings
from cdk_training_cluster_file.node_group import NodeGroupSettings
from cdk_training_cluster_file.orchestrators.choice import KINDS, NONE
from cdk_training_cluster_file.schema import texts_of

_HEAD = (
    "# A training cluster. Settings behind a # without a space are optional: take the # away to use one.",
    "# Editors complete and check this file with the schema: training-cluster schema > cluster.schema.json",
    "",
)
GBPS_OF_AN_ACCELERATOR, MAX_GBPS = 0.125, 10.0
"""What a file system is made to give, in GB/s: to each accelerator, and to all at most."""


@dataclass(frozen=True, kw_only=True)
class Answers:
    """The answers that a cluster file is written from.

    Attributes:
        name: The cluster's name.
        zone: Its Availability Zone.
        region: Its region.
        instance_type: The type of its nodes.
        count: How many nodes there are.
        buy: How they are bought, as the cluster file calls it.
        capacity_id: The id of the reservation or block, where that takes one.
        orchestrator: What runs jobs.
        dataset_gib: How much training data there is, in GiB. None: there is no file system.
        bucket: The bucket that has it. None: the foundation makes one.
        image: The id of the image that nodes start from. None: AWS's newest.
        budget_usd: What may be spent in a month. None: nothing watches it.
        prices: What the budget states of prices, in USD by their names.
        emails: Who hears of trouble.
    """

    name: str
    zone: str
    region: str
    instance_type: str
    count: int
    buy: str = "on_demand"
    capacity_id: str | None = None
    orchestrator: str = NONE
    dataset_gib: int | None = None
    bucket: str | None = None
    image: str | None = None
    budget_usd: int | None = None
    prices: Mapping[str, Decimal] = field(default_factory=dict)
    emails: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Entry:
    """A setting in the file.

    Attributes:
        name: Its name.
        value: Its value: plain, or the entries of a part, or of each part of a list.
        optional: Whether it is commented out: an example of what may be given.
        hints: What else is said above it, a line each.
    """

    name: str
    value: Any
    optional: bool = False
    hints: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Part:
    """The entries of a part of the file, which a model describes."""

    model: type[Settings]
    entries: tuple[Entry, ...]
    in_a_list: bool = False


def cluster_text(wanted: Answers) -> str:
    """Return the text of a cluster file.

    Comments are the first sentences of the schema's; a setting that is commented out has no space behind its `#`.

    Args:
        wanted: What its user wants.
    """
    whole = Part(model=ClusterFile, entries=(*_cluster(wanted), *_optional(wanted)))
    return "\n".join((*_HEAD, *_lines(whole, ""))) + "\n"


def _cluster(wanted: Answers) -> Iterator[Entry]:
    yield Entry(name="name", value=wanted.name)
    offered = f"--filters Name=instance-type,Values={wanted.instance_type}"
    ask = f"aws ec2 describe-instance-type-offerings --region {wanted.region} --location-type availability-zone"
    hints = ("Which zones of the region have the type:", f"  {ask} \\", f"    {offered}")
    yield Entry(name="availability_zone", value=wanted.zone, hints=hints)
    yield Entry(name="orchestrator", value=_orchestrator(wanted))
    yield Entry(name="node_groups", value=Part(model=NodeGroupSettings, entries=_nodes(wanted), in_a_list=True))
    files = file_system_for(wanted)
    if files is None:
        yield Entry(name="file_system", value={"storage_capacity_gib": 1200}, optional=True)
    else:
        entries = (*(Entry(name=name, value=value) for name, value in files.settings.items()), *_FILE_SYSTEM_OPTIONS)
        yield Entry(name="file_system", value=Part(model=FileSystemSettings, entries=entries))
        yield Entry(name="datasets", value=Part(model=DatasetSettings, entries=_dataset(wanted), in_a_list=True))


def _orchestrator(wanted: Answers) -> object:
    if wanted.orchestrator != "eks":
        return wanted.orchestrator
    # Its control plane needs subnets in two zones.
    region = wanted.region
    other = next(zone for zone in (f"{region}a", f"{region}b") if zone != wanted.zone)
    return {"eks": {"control_plane_zone": other}}


def _nodes(wanted: Answers) -> tuple[Entry, ...]:
    info = instance_type_info(wanted.instance_type)
    image = public_image(info, KINDS[wanted.orchestrator])
    ask = f"aws ssm get-parameter --region {wanted.region} --query Parameter.Value --output text --name"
    pin = () if image is None else ("The id of today's:", f"  {ask} \\", f"    {image.parameter_name}")
    capacity: Any = {
        "reservation": {"reservation": {"end": "until_cancelled"}},
        "from_reservation": {"from_reservation": {"id": wanted.capacity_id}},
        "capacity_block": {"capacity_block": {"id": wanted.capacity_id}},
    }.get(wanted.buy, wanted.buy)
    return (
        Entry(name="name", value="workers"),
        Entry(name="instance_types", value=[wanted.instance_type]),
        Entry(name="count", value=wanted.count),
        Entry(name="image", value=wanted.image or LATEST, hints=() if wanted.image else pin),
        Entry(name="capacity", value=capacity, hints=_OTHER_WAYS),
        Entry(name="environment", value={"NCCL_DEBUG": "WARN"}, optional=True),
        Entry(name="root_volume_gib", value=_root_volume(info), optional=True),
        Entry(name="placement", value="none", optional=info.allows_placement("cluster")),
        *((Entry(name="efa", value=False, optional=True),) if info.supports_efa else ()),
        *((Entry(name="warm_pool", value={"size": 1}, optional=True),) if wanted.buy == "on_demand" else ()),
    )


_OTHER_WAYS = (
    "Words: on_demand, spot, spot_fleet. With settings: {reservation: {end: until_cancelled}},",
    "{from_reservation: {id: cr-…}}, {capacity_block: {id: cr-…}} or {prioritized: {reservations: [cr-…]}}.",
)


def _root_volume(info: InstanceTypeInfo) -> int:
    return 1000 if info.has_neuron_devices else 500


_FILE_SYSTEM_OPTIONS = (
    Entry(name="mount_point", value="/data", optional=True),
    Entry(name="data_compression_type", value="NONE", optional=True),
    Entry(name="weekly_maintenance_start_time", value="7:03:30", optional=True),
)


def file_system_for(wanted: Answers) -> StorageOption | None:
    """Return the smallest file system that holds the data and feeds the accelerators. None: there is no data.

    Args:
        wanted: What its user wants.
    """
    if wanted.dataset_gib is None:
        return None
    info = instance_type_info(wanted.instance_type)
    each, _ = accelerators(info)
    choice = choose_storage(
        dataset_gib=wanted.dataset_gib,
        gbps=min(wanted.count * max(each, 1) * GBPS_OF_AN_ACCELERATOR, MAX_GBPS),
        nodes=wanted.count,
        instance_type=info.name,
        region=wanted.region,
    )
    lasting = [each for each in choice.options if each.kind.links and each.kind.persistent]
    return choice.recommended or min(
        lasting, key=lambda each: (each.kind.storage_type != "SSD", each.capacity_gib or 0)
    )


def _dataset(wanted: Answers) -> tuple[Entry, ...]:
    bucket = wanted.bucket or "my-training-data"
    return (
        Entry(name="file_system_path", value="/data"),
        Entry(name="bucket", value=bucket, optional=wanted.bucket is None),
        Entry(name="prefix", value="tokens/", optional=True),
        Entry(name="preload", value=True, optional=True),
    )


def _optional(wanted: Answers) -> Iterator[Entry]:
    express = {"express": {"expire_after_days": 7}}
    checkpoints: Mapping[str, object] = express if wanted.dataset_gib is None else {}
    yield Entry(name="checkpoints", value=checkpoints, optional=True)
    if wanted.emails:
        emails = Entry(name="emails", value=list(wanted.emails))
        yield Entry(name="alerts", value=Part(model=AlertSettings, entries=(emails,)))
    else:
        yield Entry(name="alerts", value={"emails": ["ml-platform@example.com"]}, optional=True)
    if wanted.budget_usd is None:
        if not place_problems(wanted.region):
            hints = _ORCHESTRATOR_PRICES if wanted.orchestrator == "slurm" else ()
            yield Entry(name="budget", value={"monthly_usd": 20000}, optional=True, hints=hints)
    else:
        prices = {name: float(usd) for name, usd in wanted.prices.items()}
        entries = (
            Entry(name="monthly_usd", value=wanted.budget_usd),
            *([Entry(name="prices", value=prices)] if prices else []),
            Entry(name="on_exceed", value="stop", optional=True),
            Entry(name="max_usd_per_hour", value=500, optional=True),
        )
        yield Entry(name="budget", value=Part(model=BudgetSettings, entries=entries))
    yield Entry(name="idle", value={"window_minutes": 90}, optional=True)
    if wanted.buy != "capacity_block":  # its nodes run while the block does
        yield Entry(name="schedule", value={"windows": ["weekdays 08:00-20:00 Europe/Berlin"]}, optional=True)
    yield Entry(name="health", value={"act": True}, optional=True)
    yield Entry(name="observability", value={"prometheus": {}}, optional=True)
    yield Entry(name="tags", value={"team": "ml-platform"}, optional=True)
    yield Entry(name="account", value="111122223333", optional=True)
    yield Entry(name="vpc_cidr", value="10.20.0.0/16", optional=True)
    network = {"vpc_id": "vpc-0a1b2c3d4e5f67890", "subnet_id": "subnet-0a1b2c3d4e5f67890"}
    yield Entry(name="network", value=network, optional=True)
    yield Entry(name="termination_protection", value=False, optional=True)


_ORCHESTRATOR_PRICES = (
    "On AWS PCS it takes `prices` too, of what `training-cluster plan` calls unknown: {aws-pcs-node: …}, from",
    "https://aws.amazon.com/pcs/pricing/",
)


def _lines(part: Part, indent: str) -> Iterator[str]:
    texts = texts_of(part.model)
    for position, entry in enumerate(part.entries):
        below = indent if not part.in_a_list else indent + "  "
        lead = below if position or not part.in_a_list else f"{indent}- "
        if not indent and position:
            yield ""
        yield from _comment(entry, texts[entry.name], below if position else indent)
        yield from _setting(entry, lead, below)


def _comment(entry: Entry, text: str, indent: str) -> Iterator[str]:
    clause = re.split(r"[.;:]\s", text.replace("\n", " "), maxsplit=1)[0].rstrip(".")
    yield f"{indent}# {clause}."
    yield from (f"{indent}# {line}" for line in entry.hints)


def _setting(entry: Entry, lead: str, indent: str) -> Iterator[str]:
    if isinstance(entry.value, Part):
        yield f"{lead}{entry.name}:"
        yield from _lines(entry.value, f"{indent}  ")
    else:
        yield f"{lead}{'#' if entry.optional else ''}{entry.name}: {_flow(entry.value)}"


def _flow(value: Any) -> str:  # noqa: ANN401 - any value of YAML
    return yaml.safe_dump(value, default_flow_style=True, width=10_000).removesuffix("...\n").strip()
