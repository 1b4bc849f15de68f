"""What node groups and the orchestrator demand of each other, with its place in a cluster file.

What AWS refuses is in the library's tables; here it only gets its place.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from aws_cdk import Token
from pydantic import TypeAdapter, ValidationError

from cdk_training_cluster import Capacity, NodeGroup
from cdk_training_cluster.cluster.orchestrator import NoOrchestrator, Orchestrator
from cdk_training_cluster.network import DEFAULT_CIDR, node_range_of
from cdk_training_cluster.nodes.rules import ClusterContext, cluster_problems
from cdk_training_cluster.nodes.rules.type_rules import MAX_TYPES, UNKNOWN_TYPE
from cdk_training_cluster.storage.express_checkpoints import BUCKET_NAME
from cdk_training_cluster.validation.rule import Problem, SettingsError
from cdk_training_cluster.validation.words import CLUSTER_FILE
from cdk_training_cluster_file import fields
from cdk_training_cluster_file.checkpoints import ExpressSettings
from cdk_training_cluster_file.idle import IdleSettings, NodeGroupIdleSettings
from cdk_training_cluster_file.instance_type_facts import InstanceTypeFacts
from cdk_training_cluster_file.node_group import NodeGroupSettings
from cdk_training_cluster_file.orchestrators import NONE, OrchestratorChoice, OrchestratorSettings
from cdk_training_cluster_file.parts import (
    TYPE,
    ZONE,
    Complaint,
    Part,
    beside_its_place,
    entries,
    formed,
    right_settings,
    valid,
    wrong_settings,
)
from cdk_training_cluster_file.problems import Location
from cdk_training_cluster_file.schedule import ScheduleSettings

_CIDR: TypeAdapter[str] = TypeAdapter(fields.VpcCidr)
_ORCHESTRATOR: TypeAdapter[OrchestratorSettings] = TypeAdapter(OrchestratorChoice)


def node_groups_are_what_aws_takes(file: Part) -> Iterator[Complaint]:
    """What AWS says of node groups is in the library's tables; here it only gets its place."""
    idle, wrong_idle = right_settings(IdleSettings, file.get("idle", {}))
    schedule = valid(ScheduleSettings, file["schedule"]) if "schedule" in file else None
    given = [part for _, part in entries(file, "instance_type_facts")]
    facts = [valid(InstanceTypeFacts, part) for part in given]
    # Of what the file says in a wrong form nothing else is known.
    half_given = {formed(part, "name", TYPE) for part, each in zip(given, facts, strict=True) if each is None}
    groups: list[tuple[_Group, NodeGroup]] = []
    for at, part in entries(file, "node_groups"):
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
        None if idle is None or "idle" not in file else idle.for_constructs(),
        [each.to_info() for each in facts if each is not None],
        availability_zone=formed(file, "availability_zone", ZONE),
        node_range=_node_range(file),
        existing_network="network" in file,
        zone_id=_zone_id(file),
        schedule=None if schedule is None else schedule.for_constructs(),
        words=CLUSTER_FILE,
        orchestrator=orchestrator.kind,
    )
    for problem in (*cluster_problems(together), *orchestrator.problems(together)):
        match problem.setting:
            case (first, *setting) if first == name:
                yield _place_of_orchestrator(file, name, setting), beside_its_place(problem)
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
                    yield where, beside_its_place(problem, problem.of)


def _node_range(file: Part) -> str | None:
    """Return the IPv4 range of the nodes' subnet, if the cluster makes it."""
    cidr = formed({"vpc_cidr": DEFAULT_CIDR, **file}, "vpc_cidr", _CIDR)
    return None if cidr is None or "network" in file else node_range_of(cidr)


def the_orchestrator_is_one_that_can_be_made(file: Part) -> Iterator[Complaint]:
    """Check the settings of an orchestrator by themselves; their demands on node groups are checked with these."""
    choice = _orchestrator_of(file)
    if choice is None or choice.settings is None:
        return
    name = _name_of(choice)
    try:
        choice.to_orchestrator()
    except SettingsError as error:
        for problem in error.problems:
            yield _place_of_orchestrator(file, name, problem.setting), beside_its_place(problem)


def _zone_id(file: Part) -> str | None:
    """Return the id of the cluster's zone, where the place of its checkpoints says it."""
    given = file.get("checkpoints")
    express = given.get("express") if isinstance(given, Mapping) else None
    settings, _ = right_settings(ExpressSettings, express)
    if settings is None:
        return None
    named = BUCKET_NAME.pattern.fullmatch(settings.bucket or "")
    return named[1] if named else settings.zone_id


def _orchestrator_of(file: Part) -> OrchestratorSettings | None:
    try:
        return _ORCHESTRATOR.validate_python(file.get("orchestrator", NONE))
    except ValidationError:
        return None


def _name_of(choice: OrchestratorSettings) -> str:
    return next((name for name, value in choice if value is not None), NONE)


def _orchestrator(file: Part) -> tuple[str, Orchestrator]:
    """Return the orchestrator and its name; of one that is not known yet nothing is demanded."""
    choice = _orchestrator_of(file)
    try:
        made = None if choice is None else choice.to_orchestrator()
    except SettingsError:
        made = None
    return (NONE if choice is None else _name_of(choice)), made or NoOrchestrator()


def _place_of_orchestrator(file: Part, name: str, setting: Sequence[str | int]) -> Location:
    """Return where a setting of an orchestrator is in a file: its word, if the file writes no settings."""
    return ("orchestrator", name, *setting) if isinstance(file.get("orchestrator"), Mapping) else ("orchestrator",)


def _needs(problem: Problem) -> set[str]:
    """Return what a sentence about idle nodes is not true without."""
    if "idle_policy" not in problem.setting:
        return set()
    name = str(problem.setting[-1])
    return {"off", *({"window_minutes", "warning_minutes"} if name in {"window", "warning"} else {name})}


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
        return ("node_groups", self.at, *place_of(setting, self.settings.capacity.call)), beside_its_place(problem)


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
    wrong = wrong_settings(NodeGroupSettings, part)
    if not wrong:
        return _Group(at=at, settings=NodeGroupSettings.model_validate(part), wrong=wrong)
    right = {key: value for key, value in part.items() if key not in wrong}
    idle, wrong_idle = right_settings(NodeGroupIdleSettings, part["idle"]) if "idle" in wrong else (None, frozenset())
    if idle is not None:
        right["idle"] = idle.model_dump(exclude_unset=True)
    if "image" in wrong:
        # The device goes with the image.
        right.pop("root_device_name", None)
    types = part.get("instance_types")
    named = [formed({"name": each}, "name", TYPE) for each in (types if isinstance(types, list) else [])]
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
