"""`make live`: the smallest check of this library on a real account, held against what the local AWS says."""

import json
import os
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import boto3
import typer
from botocore.exceptions import BotoCoreError, ClientError
from rich.console import Console

from cdk_training_cluster_stacks.cluster_file import ClusterFile
from cdk_training_cluster_stacks.problems import ClusterFileError
from cluster_contract.tags import CLUSTER_TAG
from local_aws import LocalAws
from rehearsal import readback, report
from rehearsal.cdk_cli import CdkCli, CdkFailedError
from rehearsal.inventory import looks
from rehearsal.kept import delete_file_systems, delete_network
from rehearsal.live_cluster import NAME, live_file, prices, write_assembly
from rehearsal.live_facts import Facts, fact_differences, read_facts
from rehearsal.node_groups import node_groups
from rehearsal.preparation import prepare

# Longer than the check takes, with room for a file system that is slow to come.
_RESERVED_FOR = timedelta(hours=3)
_TOOLKIT = "CDKToolkit"
_FOREIGN = (BotoCoreError, ClientError, CdkFailedError)


def main(
    availability_zone: Annotated[str, typer.Option(help="Where to make it, such as us-east-1b.")],
    build: Annotated[Path, typer.Option(help="Where logs and live.json are written to.")] = Path("build"),
    delete: Annotated[bool, typer.Option("--delete", help="Only delete what an earlier check has left.")] = False,
) -> None:
    """Create a small, empty cluster on AWS, compare it with the local AWS, and delete it with its file system."""
    console, workspace = report.make_console(), build / "live"
    workspace.mkdir(parents=True, exist_ok=True)
    try:
        check = LiveCheck(availability_zone, workspace.resolve(), console)
        if not delete:
            check.confirm()
    except (ValueError, ClusterFileError, *_FOREIGN) as error:
        sys.exit(f"error: {_line(error)}")
    differences: list[str] = []
    try:
        if not delete:
            differences = check.run()
    finally:  # whatever ends the check: nothing that bills is left in silence
        left = check.delete()
        check.show(differences, left)
    results = {"differences": differences, "left": left}
    (build / "live.json").write_text(json.dumps(results, indent=2) + "\n", encoding="utf-8")
    sys.exit(1 if differences or left else 0)


class LiveCheck:
    """One check, in one account and region."""

    def __init__(self, zone: str, workspace: Path, console: Console) -> None:
        """Find out whose credentials these are.

        Args:
            zone: The Availability Zone.
            workspace: A directory for cloud assemblies and logs.
            console: Where everything is shown.

        Raises:
            BotoCoreError: There are no credentials.
            ClientError: They are not valid.
            ClusterFileError: The zone is none.
        """
        self._zone, self._workspace, self._console = zone, workspace, console
        self._until = datetime.now(UTC) + _RESERVED_FOR
        self._region = live_file(zone).region
        self._session = boto3.Session(region_name=self._region)
        self._clients: dict[str, Any] = {}
        self._account = str(self._client("sts").get_caller_identity()["Account"])
        self._cluster = self._file(self._account)

    def confirm(self) -> None:
        """Say what it costs and where, and ask for it to be typed.

        Raises:
            ValueError: Something else was typed, an earlier check has left something, or CDK was never bootstrapped.
        """
        if not readback.stacks(self._client, [_TOOLKIT]):
            raise ValueError(
                f"run this once: cdk bootstrap -c cluster=clusters/dev-box.yaml aws://{self._account}/{self._region}"
            )
        left = list(self._left())
        if left:
            raise ValueError(f"before a check nothing may be left: {'; '.join(left)}; run: {self._delete_command}")
        costs = prices(self._region)
        wanted = f"{sum(costs.values()):.2f} USD an hour in {self._region}"
        self._console.print(
            f"This makes the cluster {NAME} in the account {self._account}, in {self._zone}, and deletes it again. "
            "No node starts. While it is there, about half an hour, it bills:",
            soft_wrap=True,
        )
        for what, usd in costs.items():
            self._console.print(f"  {what}: {usd:.2f} USD an hour")
        self._console.print(f"To go on, type: {wanted}", soft_wrap=True)
        if sys.stdin.readline().strip() != wanted:
            raise ValueError(f"nothing was made: what was typed is not {wanted!r}")
        self._console.print(f"If this is cut off, run: {self._delete_command}", soft_wrap=True)

    def run(self) -> list[str]:
        """Deploy to the local AWS and to AWS, and return what AWS says otherwise. Nothing is deleted yet."""
        try:
            local = self._said_by_the_local_aws()
            found = self._deployed(self._cdk(self._cluster, os.environ), self._client, self._account)
            return [*fact_differences(local, found), *self._running()]
        except _FOREIGN as error:
            return [f"it could not be deployed: {_line(error)}"]

    def delete(self) -> list[str]:
        """Delete all of it, going on where something fails, and return what is left, a sentence each."""
        self._console.print("Deleting it")
        cdk = self._cdk(self._cluster, os.environ)
        steps: list[Callable[[], object]] = [
            partial(write_assembly, self._cluster, cdk.output),
            *(partial(cdk.destroy, name) for name in reversed(self._stacks)),
            self._delete_file_systems,
            self._delete_tables,
            self._delete_networks,
            self._delete_log_groups,
        ]
        said = [sentence for step in steps for sentence in _failure_of(step)]
        left = list(self._left())
        return [*left, *said] if left else []

    def show(self, differences: Sequence[str], left: Sequence[str]) -> None:
        """Say what came of it."""
        for sentence in differences:
            self._console.print(f"difference: {sentence}", soft_wrap=True, markup=False)
        for sentence in left:
            self._console.print(f"left: {sentence}", soft_wrap=True, markup=False)
        if left:
            self._console.print(f"It may bill. Delete it with: {self._delete_command}", soft_wrap=True)
        else:
            self._console.print("Nothing is left of it.")

    @property
    def _stacks(self) -> list[str]:
        return [self._cluster.foundation_stack_name, self._cluster.cluster_stack_name]

    @property
    def _delete_command(self) -> str:
        return f"make live ARGS='--availability-zone {self._zone} --delete'"

    def _client(self, service: str) -> Any:
        if service not in self._clients:
            make: Any = self._session.client  # boto3's stubs know a fixed set of names
            self._clients[service] = make(service)
        return self._clients[service]

    def _file(self, account: str) -> ClusterFile:
        return live_file(self._zone, account=account, reserved_until=self._until)

    def _cdk(self, cluster: ClusterFile, environment: Mapping[str, str]) -> CdkCli:
        return CdkCli(
            environment={**environment, "AWS_REGION": self._region, "AWS_DEFAULT_REGION": self._region},
            cluster_file=Path(os.devnull),
            synthesized=True,
            output=self._workspace / str(cluster.account),
            log=self._workspace / "cdk.log",
            account=str(cluster.account),
            region=self._region,
        )

    def _said_by_the_local_aws(self) -> Facts:
        self._console.print("Deploying it to the local AWS")
        with LocalAws(self._workspace / "local-aws.log", region=self._region) as aws:
            cluster = self._file(aws.account)
            prepare(cluster, aws)
            cdk = self._cdk(cluster, aws.environment())
            write_assembly(cluster, cdk.output)
            cdk.bootstrap()
            return self._deployed(cdk, aws.client, aws.account)

    def _deployed(self, cdk: CdkCli, client: readback.Client, account: str) -> Facts:
        self._console.print(f"Deploying it to the account {account}: see {cdk.log}", soft_wrap=True)
        write_assembly(self._file(account), cdk.output)
        cdk.deploy()
        return read_facts(client, self._stacks, account)

    def _running(self) -> Iterator[str]:
        for group in node_groups(self._client, NAME):
            if group["count_running"] or group["desired_capacity"]:
                yield f"the node group {group['name']} is not empty: {group['instance_ids']}"

    def _left(self) -> Iterator[str]:
        """Say what carries the cluster's name, kind by kind, and where that could not be asked."""
        kinds = dict(looks(self._client))
        kinds["stacks"] = partial(readback.stacks, self._client, self._stacks)
        for kind, look in kinds.items():
            try:
                ids = [one for one, described in look().items() if f"{NAME}-" in one or _is_tagged(described)]
            except Exception as error:  # what the others find is said all the same
                yield f"could not look for {kind}: {_line(error)}"
                continue
            if ids:
                yield f"{kind}: {', '.join(ids)}"

    def _delete_file_systems(self) -> None:
        delete_file_systems(self._client, [one["id"] for one in readback.file_systems(self._client, NAME)])

    def _delete_tables(self) -> None:
        dynamodb = self._client("dynamodb")
        for name in list(dynamodb.get_paginator("list_tables").paginate().search("TableNames[]")):
            if name.startswith(f"{NAME}-"):
                dynamodb.delete_table(TableName=name)

    def _delete_networks(self) -> None:
        filters = [{"Name": f"tag:{CLUSTER_TAG}", "Values": [NAME]}]
        for vpc in self._client("ec2").describe_vpcs(Filters=filters)["Vpcs"]:
            delete_network(self._client, vpc["VpcId"])

    def _delete_log_groups(self) -> None:
        logs = self._client("logs")
        pages = logs.get_paginator("describe_log_groups").paginate(logGroupNamePrefix=f"{NAME}-")
        for name in list(pages.search("logGroups[].logGroupName")):
            logs.delete_log_group(logGroupName=name)


def _is_tagged(described: Mapping[str, Any]) -> bool:
    return any(tag["Key"] == CLUSTER_TAG and tag["Value"] == NAME for tag in described.get("Tags", ()))


def _failure_of(step: Callable[[], object]) -> Iterator[str]:
    try:
        step()
    except Exception as error:  # the others are deleted all the same
        yield f"could not be deleted: {_line(error)}"


def _line(error: Exception) -> str:
    return " ".join(str(error).split())


if __name__ == "__main__":
    typer.run(main)
