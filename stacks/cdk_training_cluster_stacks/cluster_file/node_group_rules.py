"""What the library's own rules say of the node groups in a file, with the place and in the words of the file.

The library's rules are asked about the very groups that the stacks would be made of. Where a setting has the wrong
form, which is complained about elsewhere, the rules that look at it are not asked.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from pydantic import ValidationError

from cdk_training_cluster import NodeGroup
from cdk_training_cluster.instance_types import InstanceTypeInfo
from cdk_training_cluster.nodes.rules import (
    NODE_GROUP_RULES,
    Rule,
    cluster_problems,
    idle_problems,
    node_group_problems,
)
from cdk_training_cluster_stacks.cluster_file.idle import IdleSettings
from cdk_training_cluster_stacks.cluster_file.node_group import NodeGroupSettings
from cdk_training_cluster_stacks.cluster_file.source import Value
from cdk_training_cluster_stacks.cluster_file.words import in_file_words
from cdk_training_cluster_stacks.problems import Location

_CAPACITY, _COUNT, _EFA, _IDLE, _IMAGE = "capacity", "count", "efa", "idle", "image"
_LAYOUT, _PLACEMENT, _TYPES, _WARM_POOL = "interface_layout", "placement", "instance_types", "warm_pool"


@dataclass(frozen=True)
class Row:
    """Where a rule's sentence belongs, and what has to be right for it to be asked.

    Attributes:
        setting: The setting that it is about, unless the sentence begins with another.
        needs: The settings that it looks at.
    """

    setting: str
    needs: tuple[str, ...]


ROWS: Mapping[str, Row] = {
    "oneType": Row(_TYPES, (_TYPES, _CAPACITY)),
    "mostTypes": Row(_TYPES, (_TYPES,)),
    "mostTemplates": Row(_TYPES, (_TYPES, _EFA, _LAYOUT, _IMAGE)),
    "typeOnce": Row(_TYPES, (_TYPES,)),
    "usageClass": Row(_TYPES, (_CAPACITY,)),
    "prioritizedTypes": Row(_TYPES, (_TYPES, _CAPACITY)),
    "efaFamilies": Row(_TYPES, (_TYPES, _EFA)),
    "acceleratorsAlike": Row(_TYPES, (_TYPES,)),
    "oneArchitecture": Row(_IMAGE, (_TYPES, _IMAGE)),
    "interfaces": Row(_EFA, (_EFA, _LAYOUT)),
    "image": Row(_IMAGE, (_IMAGE,)),
    "imageAtLaunch": Row(_IMAGE, (_IMAGE, _CAPACITY)),
    "blockPlacement": Row(_PLACEMENT, (_PLACEMENT, _CAPACITY)),
    "placementStrategy": Row(_PLACEMENT, (_PLACEMENT, _CAPACITY)),
    "blockSize": Row(_COUNT, (_COUNT, _CAPACITY)),
    "reservedCount": Row(_COUNT, (_COUNT, _CAPACITY)),
    "reservationSize": Row(_COUNT, (_COUNT, _CAPACITY)),
    "release": Row(_CAPACITY, (_COUNT, _CAPACITY)),
    "zone": Row(_CAPACITY, (_CAPACITY,)),
    "reservedRegion": Row(_CAPACITY, (_CAPACITY,)),
    "platform": Row(_CAPACITY, (_IMAGE, _CAPACITY)),
    "warmPool": Row(_WARM_POOL, (_WARM_POOL, _CAPACITY)),
    "warmPoolSize": Row(_WARM_POOL, (_WARM_POOL, _COUNT)),
    "warmPoolRoot": Row(_WARM_POOL, (_WARM_POOL,)),
}
"""Every rule of the library's that refuses something, by its id."""

# No rule asks where an image is.
_ANY_REGION = "us-east-1"

# What stands in for settings that cannot be left out.
_HARMLESS: Mapping[str, Value] = {"name": "group", _COUNT: 1, _IMAGE: "latest"}

# The settings that a sentence may begin with; those of a call are found under it.
_OF_THE_CALL = (
    *("availability_zone", "instance_count", "instance_platform", "on_idle"),
    *("reservations", "capacity_blocks"),
)
_OF_THE_GROUP = tuple(NodeGroupSettings.model_fields)


@dataclass(frozen=True, kw_only=True)
class _Group:
    """A node group of a file, as far as it is right.

    Attributes:
        at: Its place in the list.
        part: What the file says.
        settings: The same, with stand-ins for what is wrong.
        wrong: The settings that are wrong.
    """

    at: int
    part: Mapping[str, Value]
    settings: NodeGroupSettings
    wrong: frozenset[str]

    def place(self, setting: str) -> Location:
        """Return where a setting of the group, or of its way to buy, is in the file."""
        group = ("node_groups", self.at)
        if setting in _OF_THE_CALL:
            return (*group, _CAPACITY, self.settings.capacity.call, setting)
        if setting == "size":
            return (*group, _WARM_POOL, setting)
        if setting == _EFA and _EFA not in self.part:
            return (*group, _TYPES)
        return (*group, setting)


def library_complaints(
    parts: Sequence[tuple[int, Mapping[str, Value]]],
    facts: Sequence[InstanceTypeInfo],
    known: frozenset[str],
    *,
    availability_zone: str | None,
    idle: Value,
) -> Iterator[tuple[Location, str]]:
    """Say what the library refuses of the node groups in a file, each with its place.

    Args:
        parts: The groups as they are in the file, each with its place in the list.
        facts: Facts about types that the file itself has.
        known: All types that there are facts about.
        availability_zone: The cluster's zone. None: it is not known.
        idle: What the file says of all groups' idle nodes.
    """
    groups = [_group(at, part, known) for at, part in parts]
    made = [(group, group.settings.to_node_group(_ANY_REGION)) for group in groups if group.settings.instance_types]
    for group, node_group in made:
        for rule in NODE_GROUP_RULES:
            yield from _complaints(group, node_group, rule, facts, availability_zone)
    whole = {node_group.name: (group, node_group) for group, node_group in made if not group.wrong}
    for sentence in cluster_problems([node_group for _, node_group in whole.values()], facts=facts):
        last = [group for name, (group, _) in whole.items() if repr(name) in sentence][-1]
        call = last.settings.capacity
        # Of the calls that name what is reserved, only this one names several.
        place = (call.call,) if call.call == "prioritized" else (call.call, "id")
        yield (*last.place(_CAPACITY), *place), in_file_words(sentence)
    yield from _idle_complaints(whole, idle, facts)


def _idle_complaints(
    groups: Mapping[str, tuple[_Group, NodeGroup]], idle: Value, facts: Sequence[InstanceTypeInfo]
) -> Iterator[tuple[Location, str]]:
    try:
        policy = None if idle is None else IdleSettings.model_validate(idle).to_policy()
    except ValidationError:  # reading the whole file says so
        return
    for group, node_group in groups.values():
        for problem in idle_problems([node_group], policy, facts):
            sentence = problem.removeprefix(f"node group {node_group.name!r}: ")
            setting, told = _of_idle(sentence)
            own = group.part.get(_IDLE)
            # What the group leaves out is the cluster's.
            if setting and not (isinstance(own, Mapping) and setting in own):
                yield (_IDLE, setting), in_file_words(f"node group {node_group.name!r}: {told}")
            else:
                yield (*group.place(_IDLE), *([setting] if setting else [])), in_file_words(told)


def _of_idle(sentence: str) -> tuple[str, str]:
    """Take the setting of a policy that a sentence begins with off it: its place says the same."""
    found = re.match(r"(?:(\w+) of )?idle_policy must ", sentence)
    return (found[1] or "", f"must {sentence[found.end() :]}") if found else ("", sentence)


def _complaints(
    group: _Group,
    node_group: NodeGroup,
    rule: Rule,
    facts: Sequence[InstanceTypeInfo],
    availability_zone: str | None,
) -> Iterator[tuple[Location, str]]:
    row = ROWS.get(rule.id)
    if row is None or group.wrong & set(row.needs):
        return
    prefix = f"node group {node_group.name!r}: "
    for problem in node_group_problems(node_group, facts, availability_zone=availability_zone, rules=[rule]):
        setting, sentence = _subject(problem.removeprefix(prefix))
        yield group.place(setting or row.setting), in_file_words(sentence)


def _subject(sentence: str) -> tuple[str | None, str]:
    """Take the setting that a sentence begins with off it: its place says the same."""
    found = re.match(r"(\w+)(?: of (?:Capacity\.\w+\(\)|warm_pool))? must ", sentence)
    if found is None or found[1] not in ("size", *_OF_THE_CALL, *_OF_THE_GROUP):
        return None, sentence
    return found[1], f"must {sentence[found.end() :]}"


def _group(at: int, part: Mapping[str, Value], known: frozenset[str]) -> _Group:
    """Read a group, and put something harmless in the place of what is wrong in it."""
    wrong = set()
    try:
        NodeGroupSettings.model_validate(part)
    except ValidationError as error:
        wrong = {str(details["loc"][0]) for details in error.errors(include_url=False) if details["loc"]}
    types = part.get(_TYPES)
    named = [name for name in types if isinstance(name, str) and name in known] if isinstance(types, list) else []
    if not isinstance(types, list) or named != types:
        wrong.add(_TYPES)
    right = {key: value for key, value in part.items() if key not in wrong and key in _OF_THE_GROUP}
    # The device goes with an image, which may be a stand-in here; no rule looks at it.
    right.pop("root_device_name", None)
    settings = NodeGroupSettings.model_validate({**_HARMLESS, **right, _TYPES: ["p5.48xlarge"]})
    # There may be none, or more than a group may have.
    settings = settings.model_copy(update={_TYPES: tuple(named)})
    return _Group(at=at, part=part, settings=settings, wrong=frozenset(wrong))
