"""Resource types whose service has an action for each step: one row a type, in the modules beside this one."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import jmespath  # type: ignore[import-untyped]

from local_aws.cloudformation import schemas
from local_aws.cloudformation.resources.action import Action, tags_parameter
from local_aws.cloudformation.resources.base import Attributes, Call, Handler, Properties, changed, if_there, tags_of
from local_aws.cloudformation.resources.tags import retag, tag_specifications


@dataclass(frozen=True, kw_only=True)
class Members:
    """A list whose items are put on a resource, and taken off it, one by one.

    Attributes:
        property: The property that lists them.
        put: The action that puts an item there; it takes the item's own properties, or `Item` where it has none.
        remove: The action that takes it away, likewise.
        go_first: Whether they have to go before the resource does.
    """

    property: str
    put: Action
    remove: Action
    go_first: bool = False

    def bring(self, client: Any, physical_id: str, properties: Properties, before: Properties) -> None:
        """Take away what is listed no longer, and put there what is new."""
        new, old = (each.get(self.property) or [] for each in (properties, before))
        for item in old:
            if item not in new:
                self.remove.call(client, _properties_of(item), physical_id)
        for item in new:
            if item not in old:
                self.put.call(client, _properties_of(item), physical_id)

    def clear(self, client: Any, physical_id: str, properties: Properties) -> None:
        """Take away whatever is still there."""
        for item in properties.get(self.property) or []:
            if_there(self.remove.call, client, _properties_of(item), physical_id)


def _properties_of(item: Any) -> Properties:
    return item if isinstance(item, Mapping) else {"Item": item}


def _as_it_is(_: Call, properties: Properties) -> Properties:
    return properties


@dataclass(kw_only=True, eq=False)
class Regular(Handler):
    """A resource type whose service makes, changes and deletes it with an action each.

    A property that no changing action takes is refused when it changes, if CloudFormation's schema does not have the
    resource replaced then. Of attributes, those that the answer has under the same name need no mention.

    Attributes:
        type: The type.
        service: The service's name in boto3.
        create_with: The action that makes it.
        settings: The actions that carry more properties out, at the creation and when one of them changes.
        updates: The actions that change properties which `create_with` has taken.
        delete_with: The action that deletes it.
        members: The lists whose items are put on it one by one.
        named: The property with its name and the parameter that takes it. Without the property CloudFormation makes
            a name. Default: - it has none.
        name_limit: The longest name.
        made: Where the answer has the description of what was made, as JMESPath.
        id: The physical id: where the description has it, as JMESPath; or a text with {properties} in braces.
            Default: - the name.
        attributes: Attributes, likewise; in a text {id}, {name}, {region}, {account} and {partition} are known too.
        tag_kind: What EC2 calls the resource when it tags it. Default: - the service takes tags as such.
        tag_by: The attribute by which tags are changed. Default: - the physical id.
        tag_also: More parameters of the actions that change tags.
        delete_by: The attribute by which it is deleted. Default: - the physical id.
        prepare: Returns the properties in the service's words, and refuses what the service refuses. What it adds
            starts with an underscore.
        can_tag: Whether the handler tags it.
        also_supported: Properties that a handler with code of its own supports.
    """

    type: str
    service: str
    create_with: Action
    delete_with: Action
    settings: tuple[Action, ...] = ()
    updates: tuple[Action, ...] = ()
    members: tuple[Members, ...] = ()
    named: str = ""
    name_limit: int = 255
    made: str = "@"
    id: str = ""
    attributes: Mapping[str, str] = field(default_factory=dict)
    tag_kind: str = ""
    tag_by: str = ""
    tag_also: Mapping[str, str] = field(default_factory=dict)
    delete_by: str = ""
    can_tag: bool = True
    also_supported: frozenset[str] = frozenset()
    prepare: Callable[[Call, Properties], Properties] = _as_it_is
    supported: frozenset[str] = field(init=False)

    def __post_init__(self) -> None:
        taken = [action.properties for action in (self.create_with, *self.settings, *self.updates)]
        own = {*({"Tags"} if self.can_tag else ()), *(each.property for each in self.members)}
        name = self.named.partition(":")[0]
        supported = {*own, *([name] if name else []), *self.also_supported}.union(*taken)
        self.supported = frozenset(name for name in supported if not name.startswith("_"))

    def create(self, call: Call, properties: Properties) -> Attributes:
        """Call the creating action, and those for the settings that are given."""
        properties, client = self.prepare(call, properties), call.client(self.service)
        own_name, _, parameter = self.named.partition(":")
        name = properties.get(own_name) or (call.physical_name(self.name_limit) if self.named else "")
        given = {parameter: name} if parameter else {}
        if self.tag_kind:
            given |= tag_specifications(properties, self.tag_kind)
        elif self.can_tag:
            given |= tags_parameter(client, self.create_with.operation, tags_of(properties))
        described = jmespath.search(self.made, self.create_with.call(client, properties, "", **given)) or {}
        known = {**properties, "name": name}
        known["id"] = call.made(_told(self.id or "{name}", described, known))
        for action in self.settings:
            if action.properties & properties.keys():
                action.call(client, properties, call.physical_id)
        for each in self.members:
            each.bring(client, call.physical_id, properties, {})
        return self._attributes(call, known, described)

    def update(self, call: Call, properties: Properties, before: Properties) -> Attributes:
        """Call the actions that take what has changed."""
        properties, before = self.prepare(call, properties), self.prepare(call, before)
        actions, client = (*self.settings, *self.updates), call.client(self.service)
        names = changed(properties, before)
        stuck = {
            name
            for name in names - {"Tags", *(each.property for each in self.members)}
            if not any(
                name in action.properties and (name in properties or action.can_drop(name)) for action in actions
            )
        }
        if stuck:
            raise self.cannot_change(stuck)
        for action in actions:
            is_told = action.properties & properties.keys() or action.absent or action.without
            if action.properties & names and is_told:
                action.call(client, properties, call.physical_id)
        for each in self.members:
            each.bring(client, call.physical_id, properties, before)
        if self.can_tag:
            tagged = call.attributes[self.tag_by].removesuffix(":*") if self.tag_by else None
            retag(call, self.service, properties, before, tagged, **self.tag_also)
        return self._attributes(call, {"id": call.physical_id, **properties}, {})

    def delete(self, call: Call) -> None:
        """Call the deleting action."""
        client = call.client(self.service)
        for each in self.members:
            if each.go_first:
                each.clear(client, call.physical_id, call.properties)
        known = call.attributes[self.delete_by] if self.delete_by else call.physical_id
        self.delete_with.call(client, call.properties, known)

    def _attributes(self, call: Call, known: Mapping[str, Any], described: Any) -> Attributes:
        """Return the attributes; after a change those that follow from the properties."""
        known = {**known, "region": call.region, "account": call.account, "partition": call.partition}
        same = {name: name for name in schemas.attributes_of(self.type) & described.keys()}
        told = {key: _told(where, described, known) for key, where in {**same, **self.attributes}.items()}
        return {key: value for key, value in told.items() if value is not None}


def _told(where: str, described: Any, known: Mapping[str, Any]) -> Any:
    """Return what a row says: a text with what is known in its braces, or a place in a description."""
    if "{" not in where:
        return jmespath.search(where, described)
    return where.format_map(known) if all(name in known for name in re.findall(r"\{(\w+)\}", where)) else None
