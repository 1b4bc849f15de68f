"""What one setting of a cluster file demands of another.

Each rule is a function of the whole file as it was read. It checks only what has the right form and stays
silent about the rest, whose form is complained about elsewhere: so one mistake never hides another. What AWS
refuses is asked of the constructs' own tables; here it is said with its place in the file.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from difflib import get_close_matches
from pathlib import Path
from typing import TypeAlias, TypeVar

from aws_cdk import Token
from pydantic import TypeAdapter, ValidationError

from cdk_training_cluster import Capacity, NodeGroup
from cdk_training_cluster.guardrails import place_problems
from cdk_training_cluster.nodes.rules import ClusterContext, cluster_problems
from cdk_training_cluster.nodes.rules.type_rules import MAX_TYPES, UNKNOWN_TYPE
from cdk_training_cluster.orchestrators.orchestrator import NoOrchestrator, Orchestrator
from cdk_training_cluster.storage.dataset import contradictions, overlaps
from cdk_training_cluster.storage.file_system_rules import file_system_problems
from cdk_training_cluster.validation.rule import Problem, SettingsError
from cdk_training_cluster.validation.words import CLUSTER_FILE
from cdk_training_cluster_stacks.cluster_file import fields
from cdk_training_cluster_stacks.cluster_file.budget import BudgetSettings
from cdk_training_cluster_stacks.cluster_file.checkpoints import CheckpointSettings
from cdk_training_cluster_stacks.cluster_file.idle import IdleSettings, NodeGroupIdleSettings
from cdk_training_cluster_stacks.cluster_file.instance_type_facts import InstanceTypeFacts
from cdk_training_cluster_stacks.cluster_file.model import BESIDE_EXISTING, DatasetSettings, FileSystemSettings
from cdk_training_cluster_stacks.cluster_file.node_group import NodeGroupSettings
from cdk_training_cluster_stacks.cluster_file.orchestrators import NONE, OrchestratorChoice, OrchestratorSettings
from cdk_training_cluster_stacks.cluster_file.schedule import ScheduleSettings
from cdk_training_cluster_stacks.cluster_file.settings import Settings
from cdk_training_cluster_stacks.cluster_file.source import Value
from cdk_training_cluster_stacks.problems import Location

Complaint: TypeAlias = tuple[Location, str]
Part: TypeAlias = Mapping[str, Value]

_ZONE: TypeAdapter[str] = TypeAdapter(fields.AvailabilityZone)
_ACCOUNT: TypeAdapter[str] = TypeAdapter(fields.AccountId)
_KEY: TypeAdapter[str] = TypeAdapter(fields.KeyArn)
_TYPE: TypeAdapter[str] = TypeAdapter(fields.InstanceTypeName)
_ENGINE: TypeAdapter[OrchestratorSettings] = TypeAdapter(OrchestratorChoice)
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
    """Nothing here changes a bucket that exists already."""
    if file.get("access_logs") and all("bucket" in dataset for _, dataset in _parts(file, "datasets")):
        yield (
            ("access_logs",),
            "must have a bucket that the foundation makes; leave it out, or leave out a dataset's bucket",
        )


def facts_are_told_once(file: Part) -> Iterator[Complaint]:
    """A name stands for the facts of one type."""
    seen: dict[str, int] = {}
    for at, facts in _parts(file, "instance_type_facts"):
        name = _formed(facts, "name", _TYPE)
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


def node_groups_are_what_aws_takes(file: Part) -> Iterator[Complaint]:
    """What AWS says of node groups is in the library's tables; here it only gets its place."""
    idle, wrong_idle = _right(IdleSettings, file.get("idle", {}))
    schedule = _valid(ScheduleSettings, file["schedule"]) if "schedule" in file else None
    given = [part for _, part in _parts(file, "instance_type_facts")]
    facts = [_valid(InstanceTypeFacts, part) for part in given]
    # Of what the file says in a wrong form nothing else is known.
    half_given = {_formed(part, "name", _TYPE) for part, each in zip(given, facts, strict=True) if each is None}
    groups: list[tuple[_Group, NodeGroup]] = []
    for at, part in _parts(file, "node_groups"):
        group = _group(at, part)
        if group is not None:
            try:
                group.settings.to_node_group(_ANY_REGION)
            except SettingsError as error:
                yield from (group.complaint(problem.setting, problem) for problem in error.problems)
            groups.append((group, group.made()))
    name, orchestrator = _orchestrator(file)
    together = ClusterContext.of(
        [node_group for _, node_group in groups],
        None if idle is None or "idle" not in file else idle.to_policy(),
        [each.to_info() for each in facts if each is not None],
        availability_zone=_formed(file, "availability_zone", _ZONE),
        schedule=None if schedule is None else schedule.to_schedule(),
        words=CLUSTER_FILE,
        orchestrator=orchestrator.kind,
    )
    for problem in (*cluster_problems(together), *orchestrator.problems(together)):
        match problem.setting:
            case (first, *setting) if first == name:
                yield _place_of_engine(file, name, setting), _beside_its_place(problem)
            case ("node_groups", int() as number, *setting):
                group, _ = groups[number]
                types = group.settings.instance_types
                is_half_given = problem.rule == UNKNOWN_TYPE.id and types[int(setting[-1])] in half_given
                if is_half_given or _needs(problem) & (wrong_idle | group.wrong_idle):
                    continue
                where, message = group.complaint(setting, problem)
                if where[2] == "idle" or where[2] not in group.wrong:
                    yield where, message
            case _:
                if not _needs(problem) & wrong_idle:
                    where = tuple(_NAMES.get(each, each) for each in problem.setting)
                    yield where, _beside_its_place(problem, problem.of)


def the_engine_is_one_that_can_be_made(file: Part) -> Iterator[Complaint]:
    """What an engine's settings contradict by themselves; what they demand of node groups is said with these."""
    choice = _engine_of(file)
    if choice is None or choice.engine is None:
        return
    name = _name_of(choice)
    try:
        choice.to_orchestrator()
    except SettingsError as error:
        for problem in error.problems:
            yield _place_of_engine(file, name, problem.setting), _beside_its_place(problem)


def _engine_of(file: Part) -> OrchestratorSettings | None:
    try:
        return _ENGINE.validate_python(file.get("orchestrator", NONE))
    except ValidationError:
        return None


def _name_of(choice: OrchestratorSettings) -> str:
    return next((name for name, value in choice if value is not None), NONE)


def _orchestrator(file: Part) -> tuple[str, Orchestrator]:
    """Return the engine and its name; of one that is not known yet nothing is demanded."""
    choice = _engine_of(file)
    try:
        made = None if choice is None else choice.to_orchestrator()
    except SettingsError:
        made = None
    return (NONE if choice is None else _name_of(choice)), made or NoOrchestrator()


def _place_of_engine(file: Part, name: str, setting: Sequence[str | int]) -> Location:
    """Return where a setting of an engine is in a file: its word, if the file writes no settings."""
    return ("orchestrator", name, *setting) if isinstance(file.get("orchestrator"), Mapping) else ("orchestrator",)


def _needs(problem: Problem) -> set[str]:
    """Return what a sentence about idle nodes is not true without."""
    if "idle_policy" not in problem.setting:
        return set()
    name = str(problem.setting[-1])
    return {"off", *({"window_minutes", "warning_minutes"} if name in {"window", "warning"} else {name})}


def an_existing_file_system_stays_as_it_is(file: Part) -> Iterator[Complaint]:
    """Nothing here changes a file system that exists already."""
    part = file.get("file_system")
    if isinstance(part, Mapping) and "existing" in part:
        for name in part:
            if name in FileSystemSettings.model_fields and name not in BESIDE_EXISTING:
                yield (
                    ("file_system", name),
                    "must be left out beside existing, which names a file system that is made already; change that "
                    "with aws fsx update-file-system, or leave existing out",
                )


def the_file_system_is_what_fsx_makes(file: Part) -> Iterator[Complaint]:
    """What FSx says of a file system's settings beside each other is in the library's table."""
    part, datasets = file.get("file_system"), file.get("datasets")
    if not isinstance(part, Mapping) or "existing" in part:
        return
    settings, wrong = _right(FileSystemSettings, part)
    if settings is None or wrong & {"deployment_type", "storage_type"}:
        return
    links = (len(datasets) if isinstance(datasets, list) else 0) + (_exported(file) is not None)
    for problem in file_system_problems(settings.to_settings(links)):
        name = str(problem.setting[0])
        if name == "datasets":
            yield (name if datasets else "checkpoints",), problem.message
        elif name not in wrong:
            yield ("file_system", *([name] if name in part else [])), _beside_its_place(problem)


def datasets_are_what_fsx_takes(file: Part) -> Iterator[Complaint]:
    """What FSx says of data sets and checkpoints together is in the library's table; what one contradicts, too."""
    for at, part in _parts(file, "datasets"):
        settings = _valid(DatasetSettings, part)
        for setting, sentences in ({} if settings is None else contradictions(settings)).items():
            yield from ((("datasets", at, setting), sentence) for sentence in sentences)
    read = [(at, part, _dataset(at, part)) for at, part in _parts(file, "datasets")]
    made = [(at, part, dataset) for at, part, dataset in read if dataset is not None]
    exported = _exported(file)
    for problem in overlaps([*(dataset for *_, dataset in made), *([] if exported is None else [exported])]):
        match problem.setting:
            case ("datasets", int() as number, str()) if number == len(made):
                yield ("checkpoints",), problem.message
            case ("datasets", int() as number, str() as name):
                at, part, _ = made[number]
                yield ("datasets", at, *([name] if name in part else [])), problem.message
            case _:
                yield problem.setting, problem.message


def _exported(file: Part) -> DatasetSettings | None:
    """Return the exported directory of checkpoints as the data set that it is to FSx."""
    settings = (
        _valid(CheckpointSettings, file["checkpoints"]) if isinstance(file.get("checkpoints"), Mapping) else None
    )
    exported = None if settings is None else settings.directory_settings
    if exported is None:
        return None
    bucket = exported.bucket or "checkpoints-of-the-foundation"
    return DatasetSettings(file_system_path=exported.file_system_path, prefix=exported.prefix, bucket=bucket)


def exported_checkpoints_need_a_file_system(file: Part) -> Iterator[Complaint]:
    """What is exported is a directory of the file system."""
    if _exported(file) is not None and not get_close_matches("file_system", file):
        yield (
            ("checkpoints",),
            "must have a file system to be exported from; add one, such as file_system: {storage_capacity_gib: 1200}"
            ", or write checkpoints: {express: {}}",
        )


def _dataset(at: int, part: Part) -> DatasetSettings | None:
    """Read a data set; where it is not known what it links, it links what no other does."""
    apart = {"file_system_path": part.get("file_system_path"), "bucket": f"not-known-{at}"}
    return _valid(DatasetSettings, part) or _valid(DatasetSettings, apart)


def _beside_its_place(problem: Problem, of: str = "") -> str:
    """Return what is wrong, of what if the place does not say it, without the setting's name, which it does."""
    name = f"{problem.setting[-1]} "
    said = problem.message.removeprefix(name) if problem.message.startswith(f"{name}must ") else problem.message
    return f"{of}: {said}" if of else said


_NAMES: Mapping[str | int, str] = {
    "capacity_reservation_id": "id",
    "grace": "grace_minutes",
    "idle_policy": "idle",
    "machine_image": "image",
    "warning": "warning_minutes",
    "window": "window_minutes",
}
"""What the library's settings are called in a file, where that differs."""

# No rule asks where an image is.
_ANY_REGION = "us-east-1"


# Stands for a way to buy that is not known yet, and that therefore nothing contradicts.
_NOT_KNOWN = Capacity(
    call="Capacity",
    description="",
    usage_classes=("on-demand", "spot", "capacity-block"),
    owner_id="",
    takes_several_types=True,
    allows_warm_pool=True,
)


@dataclass(frozen=True, kw_only=True)
class _Group:
    """A node group of a file, of which at least one type is right.

    Attributes:
        at: Its place in the list.
        settings: What the file says, with stand-ins for what is wrong.
        wrong: The settings that are wrong.
        wrong_idle: Those that are wrong in its idle settings.
    """

    at: int
    settings: NodeGroupSettings
    wrong: frozenset[str]
    wrong_idle: frozenset[str] = frozenset()

    def made(self) -> NodeGroup:
        """Return the group as the library's rules read it, to which a root device says nothing."""
        group = self.settings.model_copy(update={"root_device_name": None}).to_node_group(_ANY_REGION)
        return replace(group, capacity=_NOT_KNOWN) if "capacity" in self.wrong else group

    def complaint(self, setting: Sequence[str | int], problem: Problem) -> Complaint:
        """Return what is wrong with a setting of the library's, with its place in the file."""
        return ("node_groups", self.at, *place_of(setting, self.settings.capacity.call)), _beside_its_place(problem)


def place_of(setting: Sequence[str | int], call: str) -> Location:
    """Return where a setting of a node group of the library's is in a group of a file.

    Args:
        setting: The setting by its path of arguments.
        call: How the group is bought.
    """
    named = [_NAMES.get(each, each) for each in setting]
    if named[0] == "capacity":
        named.insert(1, call)
    return tuple(named)


def _group(at: int, part: Part) -> _Group | None:
    """Read a group; what else is wrong in it hides nothing of what these contradict."""
    wrong = _wrong(NodeGroupSettings, part)
    if not wrong:
        return _Group(at=at, settings=NodeGroupSettings.model_validate(part), wrong=wrong)
    right = {key: value for key, value in part.items() if key not in wrong}
    idle, wrong_idle = _right(NodeGroupIdleSettings, part["idle"]) if "idle" in wrong else (None, frozenset())
    if idle is not None:
        right["idle"] = idle.model_dump(exclude_unset=True)
    if "image" in wrong:
        # The device goes with the image.
        right.pop("root_device_name", None)
    types = part.get("instance_types")
    named = [_formed({"name": each}, "name", _TYPE) for each in (types if isinstance(types, list) else [])]
    known = [name for name in named if name is not None][:MAX_TYPES]
    if not known:
        return None
    # No other group of a file can have the name.
    stand_ins = {"name": f"group-{at}", "count": 1, "image": fields.LATEST}
    settings = NodeGroupSettings.model_validate({**stand_ins, **right, "instance_types": known})
    settings = settings.model_copy(update={"name": f"Group{at}"}) if "name" in wrong else settings
    if "count" in wrong:
        # Of a number that is not known yet the library says nothing.
        settings = settings.model_copy(update={"count": Token.as_number({"Ref": "Count"})})
    return _Group(at=at, settings=settings, wrong=wrong, wrong_idle=wrong_idle)


def the_budget_can_be_watched(file: Part) -> Iterator[Complaint]:
    """What the library says of a budget whose single settings are right, and of where the cluster is."""
    budget, zone = file.get("budget"), _formed(file, "availability_zone", _ZONE)
    if not isinstance(budget, Mapping):
        return
    region = re.match(fields.REGION, zone) if zone else None
    for problem in place_problems(region[0]) if region else []:
        yield ("budget",), problem.removeprefix("budget ")
    settings = _valid(BudgetSettings, budget)
    try:
        _ = settings and settings.to_budget()
    except SettingsError as error:
        yield from ((("budget", *problem.setting), _beside_its_place(problem)) for problem in error.problems)


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
    keys_are_in_the_region_of_the_cluster,
    keys_are_in_the_account_of_the_cluster,
    access_logs_need_a_bucket_that_is_made_here,
    facts_are_told_once,
    addresses_are_listed_once,
    node_groups_are_what_aws_takes,
    the_engine_is_one_that_can_be_made,
    an_existing_file_system_stays_as_it_is,
    the_file_system_is_what_fsx_makes,
    datasets_are_what_fsx_takes,
    exported_checkpoints_need_a_file_system,
    the_budget_can_be_watched,
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


_Model = TypeVar("_Model", bound=Settings)


def _valid(model: type[_Model], part: object) -> _Model | None:
    """Return a part of the file if it has the right form; if not, reading the whole file says so."""
    return None if _wrong(model, part) else model.model_validate(part)


def _wrong(model: type[_Model], part: object) -> frozenset[str]:
    """Return which settings of a part of the file are wrong; `off` stands for all of them."""
    try:
        model.model_validate(part)
    except ValidationError as error:
        return frozenset(str(next(iter(details["loc"]), "off")) for details in error.errors(include_url=False))
    return frozenset()


def _right(model: type[_Model], part: object) -> tuple[_Model | None, frozenset[str]]:
    """Return what is right in a part of the file, whose settings may all be left out, and what is wrong."""
    wrong = _wrong(model, part)
    given = part if isinstance(part, Mapping) else {}
    return _valid(model, {key: value for key, value in given.items() if key not in wrong}), wrong
