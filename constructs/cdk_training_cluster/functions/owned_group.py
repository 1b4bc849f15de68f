"""What every function has to know of a node group: what owns its nodes."""

from collections.abc import Iterator
from dataclasses import dataclass

from cluster_contract.owners import OwnedGroupSettings, OwnerKind, OwnerSettings


@dataclass(frozen=True, kw_only=True)
class OwnedGroup:
    """Say what owns a node group's nodes; ids may be known at deployment only.

    Attributes:
        spot_fleet_id: The id of the Spot Fleet request that owns them. Default: - an Auto Scaling group owns them,
            and is found by its tags, unless `owner` names another owner.
        owner: What owns them. Default: - as `spot_fleet_id` says.
    """

    spot_fleet_id: str | None = None
    owner: OwnerSettings | None = None

    def __post_init__(self) -> None:
        """Check the settings.

        Raises:
            ValueError: They do not fit each other; every reason, a line each.
        """
        problems = list(self._problems())
        if problems:
            raise ValueError("\n".join(problems))

    @property
    def owner_settings(self) -> OwnerSettings | None:
        """What owns the nodes, as functions take it. None: an Auto Scaling group."""
        return self.owner if self.spot_fleet_id is None else OwnerSettings.spot_fleet(self.spot_fleet_id)

    @property
    def owner_kind(self) -> OwnerKind:
        """What kind of owner the nodes have."""
        return OwnedGroupSettings(owner=self.owner_settings).owner_kind

    def _problems(self) -> Iterator[str]:
        if self.owner is not None and self.spot_fleet_id is not None:
            yield f"owner excludes spot_fleet_id, got {self.owner.kind} and {self.spot_fleet_id}"
