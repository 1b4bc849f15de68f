"""What every function has to know of a node group: what owns its nodes."""

from collections.abc import Iterator
from dataclasses import dataclass

import jsii
from aws_cdk import IResolveContext, IStringProducer, Lazy, Token

from cluster_contract.owners import OwnedGroupSettings, OwnerKind, OwnerSettings, logical_id_digest


@dataclass(frozen=True, kw_only=True)
class OwnedGroup:
    """Say what owns a node group's nodes; ids may be known at deployment only.

    Attributes:
        spot_fleet_id: The id of the Spot Fleet request that owns them. Default: - an Auto Scaling group owns them,
            unless `owner` names another owner.
        owner: What owns them. Default: - as `spot_fleet_id` says.
        logical_id: The logical id of that Auto Scaling group, such as `group.logical_id`. Default: - the functions
            find the group by the tags of the cluster.
    """

    spot_fleet_id: str | None = None
    owner: OwnerSettings | None = None
    logical_id: str | None = None

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
    def resource(self) -> str:
        """The digest of the logical id, as functions take it. Empty: there is none."""
        if self.logical_id is None or not Token.is_unresolved(self.logical_id):
            return logical_id_digest(self.logical_id) if self.logical_id else ""
        return Lazy.uncached_string(_Digest(self.logical_id))

    @property
    def owner_kind(self) -> OwnerKind:
        """What kind of owner the nodes have."""
        return OwnedGroupSettings(owner=self.owner_settings).owner_kind

    def _problems(self) -> Iterator[str]:
        if self.owner is not None and self.spot_fleet_id is not None:
            yield f"owner excludes spot_fleet_id, got {self.owner.kind} and {self.spot_fleet_id}"
        if self.logical_id is not None and self.owner_kind is not OwnerKind.AUTO_SCALING_GROUP:
            yield f"logical_id takes a node group that an Auto Scaling group owns, got the owner {self.owner_kind}"


@jsii.implements(IStringProducer)
class _Digest:
    """The digest of a logical id that an override may change until the template is made."""

    def __init__(self, logical_id: str) -> None:
        self._logical_id = logical_id

    def produce(self, context: IResolveContext) -> str:
        """Return the digest."""
        return logical_id_digest(context.resolve(self._logical_id))
