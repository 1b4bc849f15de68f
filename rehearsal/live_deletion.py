"""Deletes all that `make live` makes, going on where something fails, and says what is left."""

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any

from botocore.exceptions import WaiterError

from cluster_contract.tags import CLUSTER_TAG
from rehearsal import readback
from rehearsal.inventory import looks
from rehearsal.kept import delete_file_systems, delete_network
from rehearsal.live_cluster import NAME
from rehearsal.live_outcomes import refusals
from rehearsal.readback import Client

_PREFIX = f"{NAME}-"
# Its exports are the others' imports.
_LAST = f"{NAME}-foundation"


def delete_all(client: Client) -> list[str]:
    """Delete all of it, stacks first, and return what is left, a sentence each; nothing, if nothing is left.

    Args:
        client: Makes clients.
    """
    steps: list[Callable[[], object]] = [
        partial(_delete_stacks, client),
        partial(_start_deletion, client, _LAST),
        partial(_wait_for_deletion, client, _LAST),
        partial(_delete_file_systems, client),
        partial(_delete_tables, client),
        partial(_delete_networks, client),
        partial(_delete_log_groups, client),
    ]
    said = [sentence for step in steps for sentence in _failure_of(step)]
    left = list(what_is_left(client))
    return [*left, *said] if left else []


def what_is_left(client: Client) -> Iterator[str]:
    """Say what carries the cluster's name, kind by kind, and where that could not be asked.

    Args:
        client: Makes clients.
    """
    kinds = dict(looks(client))
    kinds["stacks"] = partial(_stacks, client)
    for kind, look in kinds.items():
        try:
            ids = [one for one, described in look().items() if _PREFIX in one or _is_tagged(described)]
        except Exception as error:  # what the others find is said all the same
            yield f"could not look for {kind}: {line(error)}"
            continue
        if ids:
            yield f"{kind}: {', '.join(ids)}"


def line(error: Exception) -> str:
    """Return what an error says, in one line.

    Args:
        error: The error.
    """
    return " ".join(str(error).split())


def _start_deletion(client: Client, name: str) -> None:
    # Of a stack that is not there, nothing happens.
    client("cloudformation").delete_stack(StackName=name)


def _wait_for_deletion(client: Client, name: str) -> None:
    try:
        client("cloudformation").get_waiter("stack_delete_complete").wait(StackName=name)
    except WaiterError as error:
        raise RuntimeError(f"{name}: {'; '.join(refusals(client, name, line(error)))}") from error


def _stacks(client: Client) -> Mapping[str, Any]:
    found = client("cloudformation").get_paginator("describe_stacks").paginate().search("Stacks[].StackName")
    return readback.stacks(client, [name for name in found if name.startswith(_PREFIX)])


def _delete_stacks(client: Client) -> None:
    """Delete the stacks that need the foundation side by side, each whatever becomes of the others."""
    names = [name for name in sorted(_stacks(client)) if name != _LAST]
    said = [
        sentence
        for step in (_start_deletion, _wait_for_deletion)
        for name in names
        for sentence in _failure_of(partial(step, client, name))
    ]
    if said:
        raise RuntimeError("; ".join(said))


def _delete_file_systems(client: Client) -> None:
    delete_file_systems(client, [one["id"] for one in readback.file_systems(client, NAME)])


def _delete_tables(client: Client) -> None:
    dynamodb = client("dynamodb")
    for name in list(dynamodb.get_paginator("list_tables").paginate().search("TableNames[]")):
        if name.startswith(_PREFIX):
            dynamodb.delete_table(TableName=name)


def _delete_networks(client: Client) -> None:
    filters = [{"Name": f"tag:{CLUSTER_TAG}", "Values": [NAME]}]
    for vpc in client("ec2").describe_vpcs(Filters=filters)["Vpcs"]:
        delete_network(client, vpc["VpcId"])


def _delete_log_groups(client: Client) -> None:
    logs = client("logs")
    pages = logs.get_paginator("describe_log_groups").paginate(logGroupNamePrefix=_PREFIX)
    for name in list(pages.search("logGroups[].logGroupName")):
        logs.delete_log_group(logGroupName=name)


def _is_tagged(described: Mapping[str, Any]) -> bool:
    return any(tag["Key"] == CLUSTER_TAG and tag["Value"] == NAME for tag in described.get("Tags", ()))


def _failure_of(step: Callable[[], object]) -> Iterator[str]:
    try:
        step()
    except Exception as error:  # the others are deleted all the same
        yield f"could not be deleted: {line(error)}"
