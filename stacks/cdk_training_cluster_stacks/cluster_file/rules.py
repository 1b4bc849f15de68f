"""What one setting of a cluster file demands of another.

Each rule is a function of the whole file as it was read. It looks only at what has the right form and stays
silent about the rest, whose form is complained about elsewhere: so one mistake never hides another. What AWS
refuses is asked of the constructs' own tables; here it is said with its place in the file.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from difflib import get_close_matches
from pathlib import Path
from typing import TypeAlias

from pydantic import TypeAdapter, ValidationError

from cdk_training_cluster.guardrails import place_problems
from cdk_training_cluster.instance_types import InstanceTypeInfo, instance_type_names
from cdk_training_cluster_stacks.cluster_file import fields
from cdk_training_cluster_stacks.cluster_file.budget import BudgetSettings
from cdk_training_cluster_stacks.cluster_file.instance_type_facts import InstanceTypeFacts
from cdk_training_cluster_stacks.cluster_file.node_group_rules import library_complaints
from cdk_training_cluster_stacks.cluster_file.source import Value
from cdk_training_cluster_stacks.problems import Location

Complaint: TypeAlias = tuple[Location, str]
Part: TypeAlias = Mapping[str, Value]

_ZONE: TypeAdapter[str] = TypeAdapter(fields.AvailabilityZone)
_DIRECTORY: TypeAdapter[str] = TypeAdapter(fields.FileSystemPath)
_PREFIX: TypeAdapter[str] = TypeAdapter(fields.Prefix)
_BUCKET: TypeAdapter[str] = TypeAdapter(fields.BucketName)
_ACCOUNT: TypeAdapter[str] = TypeAdapter(fields.AccountId)
_KEY: TypeAdapter[str] = TypeAdapter(fields.KeyArn)
_NAME: TypeAdapter[str] = TypeAdapter(fields.NodeGroupName)
_TYPE: TypeAdapter[str] = TypeAdapter(fields.InstanceTypeName)
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
    cluster = _formed(file, "availability_zone", _ZONE)
    subnet = _formed(network, "availability_zone", _ZONE) if isinstance(network, Mapping) else None
    if cluster and subnet and cluster != subnet:
        yield (
            ("network", "availability_zone"),
            f"the subnet is in {subnet} and the cluster in {cluster}; name a subnet in {cluster}, or set the "
            f"cluster's availability_zone to {subnet}",
        )


def datasets_need_a_file_system(file: Part) -> Iterator[Complaint]:
    """A dataset is a directory of the file system."""
    if file.get("datasets") and not get_close_matches("file_system", file):  # a misspelt one is there
        yield (
            ("datasets",),
            "must have a file system to appear in; add one, such as file_system: {storage_capacity_gib: 1200}",
        )


def datasets_do_not_overlap(file: Part) -> Iterator[Complaint]:
    """Neither directories nor prefixes of one bucket may nest.

    https://docs.aws.amazon.com/fsx/latest/LustreGuide/create-dra-linked-data-repo.html
    """
    seen: list[tuple[int, str | None, tuple[str | None, str] | None]] = []
    for at, dataset in _parts(file, "datasets"):
        directory = _formed(dataset, "file_system_path", _DIRECTORY)
        prefix = _formed({"prefix": "", **dataset}, "prefix", _PREFIX)
        bucket = _formed(dataset, "bucket", _BUCKET)
        link = None
        if prefix is not None and (bucket or "bucket" not in dataset):
            link = (bucket, prefix)
        for first, other, other_link in seen:
            if directory and other and _nest(directory, other):
                yield (
                    ("datasets", at, "file_system_path"),
                    f"{directory} and {other} (datasets[{first}]) lie in each other; choose directories side by side",
                )
            if link and other_link and link[0] == other_link[0] and _nest(f"/{link[1]}", f"/{other_link[1]}"):
                yield (
                    ("datasets", at, "prefix") if "prefix" in dataset else ("datasets", at),
                    f'"{link[1]}" and "{other_link[1]}" (datasets[{first}]) lie in each other in one bucket; '
                    "link the outer one alone, or use prefixes side by side",
                )
        seen.append((at, directory, link))


def keys_are_in_the_region_of_the_cluster(file: Part) -> Iterator[Complaint]:
    """No service uses a key of another region."""
    zone = _formed(file, "availability_zone", _ZONE)
    for place, region, _ in _keys(file):
        if zone and not re.fullmatch(rf"{region}(?:-[a-z]+-[0-9]+)?[a-z]", zone):
            yield place, f"the key is in {region} and the cluster in {zone}; name a key of the zone's region"


def keys_are_in_the_account_of_the_cluster(file: Part) -> Iterator[Complaint]:
    """The statements of `training-cluster key-policy` let roles of the cluster's account use the key."""
    cluster = _formed(file, "account", _ACCOUNT)
    for place, _, account in _keys(file):
        if cluster and account != cluster:
            yield place, f"the key is in the account {account} and the cluster in {cluster}; name a key of {cluster}"


def access_logs_need_a_bucket_that_is_made_here(file: Part) -> Iterator[Complaint]:
    """Nothing here changes a bucket that is somebody else's."""
    if file.get("access_logs") and all("bucket" in dataset for _, dataset in _parts(file, "datasets")):
        yield (
            ("access_logs",),
            "must have a bucket that is made here to tell of; leave it out, or leave out a dataset's bucket",
        )


def names_are_unique(file: Part) -> Iterator[Complaint]:
    """A name stands for one group, and for the facts of one type."""
    for key in ("node_groups", "instance_type_facts"):
        seen: dict[str, int] = {}
        for at, part in _parts(file, key):
            name = _formed(part, "name", _NAME if key == "node_groups" else _TYPE)
            if name in seen:
                yield (
                    (key, at, "name"),
                    f'"{name}" is already the name of {key}[{seen[name]}]; give each its own name',
                )
            elif name:
                seen[name] = at


def types_are_known(file: Part) -> Iterator[Complaint]:
    """A type is in the catalog, or its facts are in the file."""
    told = {_formed(facts, "name", _TYPE) for _, facts in _parts(file, "instance_type_facts")}
    catalog = set(instance_type_names())
    for at, group in _parts(file, "node_groups"):
        for place, name in enumerate(_type_names(group)):
            if name is not None and name not in catalog | told:
                near = get_close_matches(name, sorted(catalog), n=3)
                hint = f"did you mean {' or '.join(near)}?" if near else "it lists accelerated and EFA types."
                yield (
                    ("node_groups", at, "instance_types", place),
                    f'the catalog has no type "{name}"; {hint} Facts about a newer type go under instance_type_facts',
                )


def the_library_refuses_nothing(file: Part) -> Iterator[Complaint]:
    """What AWS says of node groups, each by itself and all together, is in the library's tables."""
    facts = _extra_facts(file)
    zone = _formed(file, "availability_zone", _ZONE)
    yield from library_complaints(
        list(_parts(file, "node_groups")),
        facts,
        frozenset({*instance_type_names(), *(info.name for info in facts)}),
        availability_zone=zone,
        idle=file.get("idle"),
    )


def the_budget_can_be_watched(file: Part) -> Iterator[Complaint]:
    """What the library says of a budget whose single settings are right, and of where the cluster is."""
    budget, zone = file.get("budget"), _formed(file, "availability_zone", _ZONE)
    if not isinstance(budget, Mapping):
        return
    region = re.match(fields.REGION, zone) if zone else None
    for problem in place_problems(region[0]) if region else []:
        yield ("budget",), problem.removeprefix("budget ")
    try:
        BudgetSettings.model_validate(budget).to_budget()
    except ValidationError:  # reading the whole file says so
        return
    except ValueError as error:
        for line in str(error).splitlines():
            yield ("budget", line.partition(" ")[0].rstrip(",")), line.partition(" ")[2]


def a_root_device_needs_an_image(file: Part) -> Iterator[Complaint]:
    """The root device of AWS's images is known; another name would add a volume."""
    for at, group in _parts(file, "node_groups"):
        if "root_device_name" in group and group.get("image") == "latest":
            yield (
                ("node_groups", at, "root_device_name"),
                "goes with an image of your own; leave it out with image: latest",
            )


def scripts_exist(file: Part, directory: Path) -> Iterator[Complaint]:
    """What shall run on a node has to be there to be uploaded."""
    for at, group in _parts(file, "node_groups"):
        for key in ("scripts_before", "scripts_after"):
            scripts = group.get(key)
            for place, script in enumerate(scripts if isinstance(scripts, list) else []):
                name = _formed({"name": script}, "name", _SCRIPT)
                if name is not None and not (directory / name).is_file():
                    yield ("node_groups", at, key, place), f'there is no file "{name}" beside this one'


RULES: tuple[Callable[[Part], Iterator[Complaint]], ...] = (
    the_subnet_is_in_the_zone_of_the_cluster,
    datasets_need_a_file_system,
    datasets_do_not_overlap,
    keys_are_in_the_region_of_the_cluster,
    keys_are_in_the_account_of_the_cluster,
    access_logs_need_a_bucket_that_is_made_here,
    names_are_unique,
    types_are_known,
    the_library_refuses_nothing,
    the_budget_can_be_watched,
    a_root_device_needs_an_image,
)
"""All that needs nothing but the file's own text."""


def _parts(file: Part, key: str) -> Iterator[tuple[int, Part]]:
    """Go through the entries of a list that are mappings, each with its position."""
    entries = file.get(key)
    for at, entry in enumerate(entries if isinstance(entries, list) else []):
        if isinstance(entry, Mapping):
            yield at, entry


def _keys(file: Part) -> Iterator[tuple[Location, str, str]]:
    """Go through the KMS keys, each with its place, region and account."""
    places: tuple[tuple[Location, Value], ...] = (((), dict(file)), (("file_system",), file.get("file_system")))
    for place, part in places:
        key = _formed(part, "encryption_key", _KEY) if isinstance(part, Mapping) else None
        if key is not None:
            _, _, _, region, account, _ = key.split(":")
            yield (*place, "encryption_key"), region, account


def _formed(part: Part, key: str, form: TypeAdapter[str]) -> str | None:
    """Return a setting if it has the right form; if not, the form is complained about elsewhere."""
    try:
        return form.validate_python(part.get(key))
    except ValidationError:
        return None


def _type_names(group: Part) -> list[str | None]:
    """Return a group's types in their places, None where there is no name of one."""
    names = group.get("instance_types")
    return [_formed({"name": name}, "name", _TYPE) for name in (names if isinstance(names, list) else [])]


def _extra_facts(file: Part) -> list[InstanceTypeInfo]:
    """Return those of the file's own facts that have the right form."""
    found = []
    for _, facts in _parts(file, "instance_type_facts"):
        try:
            found.append(InstanceTypeFacts.model_validate(facts).to_info())
        except ValidationError:  # reading the whole file says so
            continue
    return found


def _nest(first: str, second: str) -> bool:
    """Say whether one of two paths lies in the other; both start with /, with or without one at the end."""
    outer, inner = sorted((first.rstrip("/") + "/", second.rstrip("/") + "/"), key=len)
    return inner.startswith(outer)
