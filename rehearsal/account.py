"""What the local account holds of the rehearsed cluster."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cdk_training_cluster_file import ClusterFile
from local_aws import LocalAws
from local_aws.functions import DeployedFunction
from rehearsal import readback, slurm
from rehearsal.inventory import Inventory, take_inventory
from rehearsal.node_groups import node_groups
from rehearsal.outcome import Findings


@dataclass(frozen=True)
class Account:
    """Reads the account as the rehearsal compares it.

    Attributes:
        cluster: The cluster file.
        aws: The local AWS.
        workspace: A directory for functions' code.
        findings: Where differences are collected.
    """

    cluster: ClusterFile
    aws: LocalAws
    workspace: Path
    findings: Findings

    def inventory(self) -> Inventory:
        """Return all that the account holds."""
        return take_inventory(self.aws.client)

    def read(self) -> dict[str, Any]:
        """Return the cluster's stacks, node groups, queues, file system and data sets."""
        client = self.aws.client
        systems = readback.file_systems(client, self.cluster.name)
        if len(systems) > 1:
            self.findings.differences.append(f"there are {len(systems)} file systems, the file says one")
        system = systems[0] if systems else None
        stacks = readback.stacks(client, [self.cluster.foundation_stack_name, self.cluster.cluster_stack_name])
        return {
            "stacks": stacks,
            "resources": dict(
                sorted(sum((Counter(stack["resources"]) for stack in stacks.values()), Counter()).items())
            ),
            "node_groups": node_groups(client, self.cluster.name),
            "queues": slurm.queues(client, self.cluster.name),
            "file_system": system,
            "datasets": readback.datasets(client, system["id"]) if system else [],
        }

    def functions(self) -> dict[str, tuple[DeployedFunction, Mapping[str, Any]]]:
        """Return the deployed functions, ready to be called, and what they are set to, by their packages."""
        return {
            configuration["Handler"].partition(".")[0]: (
                DeployedFunction(configuration, code, self.workspace, self.aws.environment()),
                configuration,
            )
            for configuration, code in readback.functions(
                self.aws.client, self.cluster.cluster_stack_name, self.aws.account, self.aws.region
            )
        }

    def is_up(self) -> bool:
        """Tell whether every node group runs as many nodes as the file says."""
        found = node_groups(self.aws.client, self.cluster.name)
        wanted = {settings.name: settings.count for settings in self.cluster.node_groups}
        return all(group["count_running"] == wanted.get(group["name"]) for group in found)

    def sizes(self) -> dict[str, int]:
        """Return how many nodes run, by node group."""
        return {group["name"]: group["count_running"] for group in node_groups(self.aws.client, self.cluster.name)}
