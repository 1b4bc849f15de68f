"""What a folder is generated from."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from cdk_training_cluster_file.kubernetes import DEFAULT_TEAM, KubernetesSettings, TeamSettings
from cdk_training_cluster_manifests.kubernetes.governance import Governance
from cdk_training_cluster_manifests.kubernetes.group_nodes import GroupNodes


@dataclass(frozen=True, kw_only=True)
class FileSystem:
    """The cluster's FSx file system in pods.

    Attributes:
        mount_point: Where pods see it, as nodes do.
        checkpoint_directory: Where jobs keep checkpoints.
    """

    mount_point: str
    checkpoint_directory: str


@dataclass(frozen=True, kw_only=True)
class Team:
    """A team and its nodes.

    Attributes:
        name: Its name.
        namespace: Its namespace.
        nodes: How many nodes of each node group are its own.
        borrow: Whether its jobs may use nodes that others leave idle.
    """

    name: str
    namespace: str
    nodes: Mapping[str, int]
    borrow: bool


@dataclass(frozen=True, kw_only=True)
class KubernetesCluster:
    """The parts of a cluster that the Kubernetes folder is generated from.

    Attributes:
        name: The cluster's name.
        region: Its region.
        zone: The nodes' Availability Zone.
        groups: Its node groups.
        file_system: Its file system. None: it has none.
        settings: What the file says of Kubernetes.
        hyperpod: Whether the nodes are HyperPod's, whose chart brings the device plugins.
        governance: What HyperPod's task governance is told, whose add-on brings Kueue, namespaces and queues. None:
            it is not used.
        idle_minutes: After how many idle minutes nodes may go.
    """

    name: str
    region: str
    zone: str
    groups: Sequence[GroupNodes]
    file_system: FileSystem | None
    settings: KubernetesSettings
    hyperpod: bool = False
    governance: Governance | None = None
    idle_minutes: int = 60

    @cached_property
    def teams(self) -> Sequence[Team]:
        """The teams, each with its nodes of every group.

        Raises:
            ValueError: Teams want more nodes than a group has, or a group that there is none of.
        """
        given = self.settings.teams or (TeamSettings(name=DEFAULT_TEAM),)
        counts = {each.name: each.group.count for each in self.groups}
        self._refuse_wrong_shares(given, counts)
        left = {
            name: count - sum((team.nodes or {}).get(name, 0) for team in given) for name, count in counts.items()
        }
        namespaces = self.settings.namespaces(governed=self.governance is not None)
        sharers = sum(team.nodes is None for team in given)
        return [
            Team(
                name=team.name,
                namespace=namespaces[team.name],
                nodes={
                    name: left[name] // sharers if team.nodes is None else team.nodes.get(name, 0) for name in counts
                },
                borrow=team.borrow,
            )
            for team in given
        ]

    def usable(self, team: Team) -> Mapping[str, int]:
        """Return how many nodes of each group a team's jobs can have at most.

        Args:
            team: The team.
        """
        return {each.name: each.group.count for each in self.groups} if team.borrow else team.nodes

    @staticmethod
    def _refuse_wrong_shares(teams: Sequence[TeamSettings], counts: Mapping[str, int]) -> None:
        names = [team.name for team in teams]
        for name in sorted({each for each in names if names.count(each) > 1}):
            raise ValueError(f"kubernetes.teams has two teams {name!r}: give each its own name")
        for team in teams:
            for group in team.nodes or {}:
                if group not in counts:
                    raise ValueError(
                        f"kubernetes.teams: nodes of team {team.name!r} must name node groups of the file, which are "
                        f"{', '.join(counts)}, got {group}"
                    )
        for group, count in counts.items():
            wanted = sum((team.nodes or {}).get(group, 0) for team in teams)
            if wanted > count:
                raise ValueError(
                    f"kubernetes.teams must share at most the {count} nodes of node group {group!r}, got {wanted}: "
                    "lower a team's nodes, or raise the group's count"
                )
