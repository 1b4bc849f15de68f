"""Where the function records its groups' desired states: tags on what owns their nodes, which nothing else reads."""

from collections.abc import Iterable

from cluster_common.owners.groups import OwnedGroup
from cluster_common.owners.node_owner import Owners
from cluster_power.groups import Group
from cluster_power.records import Record, changed_tags


class StateStore:
    """Load and save records of groups; another place can take the tags' without a change to any decision."""

    def __init__(self, owners: Owners) -> None:
        self.owners = owners

    def load(self, groups: Iterable[OwnedGroup]) -> list[Group]:
        """Return groups that were read, each with its record."""
        return [Group.recorded(group, Record.from_tags(group.tags)) for group in groups]

    def describe(self, group: Group) -> Group | None:
        """Read one group and its record again. None: it is gone, or another cluster's."""
        fresh = self.owners.of(group).describe(group)
        return self.load([fresh])[0] if fresh else None

    def save(self, group: Group, **changes: object) -> None:
        """Record changes of a group, by the names of the record's attributes; the others stay."""
        self.owners.of(group).tag(group, changed_tags(**changes))

    def save_record(self, group: Group, record: Record) -> None:
        """Record what was ordered of a group."""
        self.owners.of(group).tag(group, record.to_tags())
