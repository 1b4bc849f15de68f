"""Deploy a cluster with every optional part of its file, and take the parts away one after another."""

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from cdk_training_cluster_file import ClusterFile, read_cluster_file
from cdk_training_cluster_file.source import parse
from cluster_contract.tags import CLUSTER_TAG
from rehearsal import readback
from rehearsal.cdk_cli import CdkCli, CdkFailedError
from rehearsal.kept import delete_file_systems, delete_security_groups

Settings = dict[str, Any]

_RELATIVE = ("scripts_before", "scripts_after")


@dataclass(frozen=True)
class Part:
    """Something that a cluster file may have or not.

    Attributes:
        name: What is taken away.
        without: Returns the file without it, or the same if it is not there.
        imported: Whether the cluster imports it from the foundation: then the cluster goes first, by itself.
    """

    name: str
    without: Callable[[Settings], Settings]
    imported: bool = False


def _less(*keys: str) -> Callable[[Settings], Settings]:
    return lambda file: {key: value for key, value in file.items() if key not in keys}


def _groups(change: Callable[[Settings], Settings], count: int | None = None) -> Callable[[Settings], Settings]:
    return lambda file: file | {"node_groups": [change(group) for group in file["node_groups"][:count]]}


STAYING = {
    "account": "a cluster is where it is",
    "vpc_cidr": "the range of a VPC never changes",
    "network": "what is in one network cannot be moved to another",
    "instance_type_facts": "they come and go with the types that they describe",
    "encryption_key": "moto has no AssociateKmsKey, by which a log group's key changes in place",
    "termination_protection": "it is off from the start, so that the stack can be deleted in the end",
}
"""The optional settings of a cluster file that are never taken away, and why."""

_IN_THEIR_OWN_WAY = ("idle", "datasets", "access_logs", "checkpoints", "file_system")
_AT_ONCE = tuple(
    name
    for name, field in ClusterFile.model_fields.items()
    if not field.is_required() and name not in {*STAYING, *_IN_THEIR_OWN_WAY}
)

PARTS = (
    Part(", ".join(_AT_ONCE), _less(*_AT_ONCE)),
    Part("the groups' warm pools and idle policies", _groups(_less("warm_pool", "idle"))),
    Part("idle stop", lambda file: file | {"idle": {"off": True}}),
    Part("all node groups but one", _groups(dict, count=1)),
    Part("datasets", _less("datasets", "access_logs")),
    Part("checkpoints", _less("checkpoints"), imported=True),
    Part("file_system", _less("file_system"), imported=True),
)
"""Cumulative: each is taken away from what those before it have left."""


def without_parts(
    file: Path, directory: Path, name: str, parts: Sequence[Part] = PARTS
) -> Iterator[tuple[Part, Path]]:
    """Yield the cluster files of a cluster that loses its parts; a part that it does not have is left out.

    Args:
        file: The cluster file that has them.
        directory: Where the others are written to.
        name: What the cluster is called in all of them.
        parts: What is taken away, in turn.
    """
    source = parse(file.read_text(encoding="utf-8")).value
    if not isinstance(source, dict):
        raise TypeError(source)
    moved = os.path.relpath(file.parent, directory)
    left: Settings = _groups(
        lambda group: {
            key: [f"{moved}/{script}" for script in value] if key in _RELATIVE else value
            for key, value in group.items()
        }
    )({**source, "name": name, "termination_protection": False})
    yield _written(Part("nothing", dict), left, directory / "0.yaml")
    for at, part in enumerate(parts, 1):
        less = part.without(left)
        if less != left:
            left = less
            yield _written(part, left, directory / f"{at}.yaml")


def _written(part: Part, settings: Settings, file: Path) -> tuple[Part, Path]:
    file.write_text(yaml.safe_dump(settings, sort_keys=False), encoding="utf-8")
    return part, file


class PartsRemoval:
    """Deploys such files in turn, as their user does, and says what is not as it should be."""

    def __init__(self, client: readback.Client, cdk: Callable[[Path], CdkCli]) -> None:
        """Prepare; nothing runs yet.

        Args:
            client: Makes clients of the local AWS.
            cdk: Returns the CDK CLI for a cluster file.
        """
        self._client = client
        self._cdk = cdk

    def remove(self, part: Part, file: Path) -> list[str]:
        """Deploy what is left without a part. What held data stays, whatever goes.

        Args:
            part: What was taken away.
            file: The cluster file without it.

        Raises:
            CdkFailedError: A deployment failed that had to succeed.
        """
        cluster, cdk = read_cluster_file(file), self._cdk(file)
        kept = self._file_systems(cluster)
        differences = []
        if part.imported:
            differences += self._refused(cdk, part)
            cdk.deploy(cluster.cluster_stack_name, exclusively=True, assembly=True)
        cdk.deploy(assembly=part.imported)
        stacks = readback.stacks(self._client, [cluster.foundation_stack_name, cluster.cluster_stack_name])
        differences += [
            f"without {part.name} the stack {name} is {stack['status']}"
            for name, stack in stacks.items()
            if not stack["status"].endswith(("CREATE_COMPLETE", "UPDATE_COMPLETE"))
        ]
        if kept and self._file_systems(cluster) != kept:
            differences.append(f"without {part.name} the file system is another than {kept}")
        return differences

    def destroy(self, file: Path) -> None:
        """Take down what is left: a file system that the file no longer has is deleted by its owner before.

        Args:
            file: The cluster file that was deployed last.
        """
        cluster, cdk = read_cluster_file(file), self._cdk(file)
        cdk.destroy(cluster.cluster_stack_name)
        for system in readback.file_systems(self._client, cluster.name) if cluster.file_system is None else ():
            delete_file_systems(self._client, [system["id"]])
            delete_security_groups(self._client, self._kept_groups(cluster, system["vpc_id"]))
        cdk.destroy(cluster.foundation_stack_name)

    def _kept_groups(self, cluster: ClusterFile, vpc_id: str) -> list[str]:
        """Return the VPC's security groups that the stack no longer has: the file system's."""
        resources = readback.stack_resources(self._client, cluster.foundation_stack_name)
        own = {one["PhysicalResourceId"] for one in resources}
        filters = [{"Name": "vpc-id", "Values": [vpc_id]}, {"Name": f"tag:{CLUSTER_TAG}", "Values": [cluster.name]}]
        found = self._client("ec2").describe_security_groups(Filters=filters)["SecurityGroups"]
        return [group["GroupId"] for group in found if group["GroupId"] not in own]

    def _refused(self, cdk: CdkCli, part: Part) -> list[str]:
        """Deploy all at once, which CloudFormation has to refuse, with the foundation as it was."""
        try:
            cdk.deploy()
        except CdkFailedError as refusal:
            return [] if "in use by" in str(refusal) else [f"{part.name} could not be removed: {refusal}"]
        return [f"{part.name} went from the foundation while the cluster imported it"]

    def _file_systems(self, cluster: ClusterFile) -> list[Mapping[str, Any]]:
        return [
            {key: system[key] for key in ("id", "lifecycle", "mount_name")}
            for system in readback.file_systems(self._client, cluster.name)
        ]
