"""`make live`: the smallest check of this library on a real account, held against what the local AWS says."""

import json
import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Annotated, Any

import boto3
import typer
from botocore.exceptions import BotoCoreError, ClientError
from rich.console import Console

from cdk_training_cluster_file import ClusterFile
from cdk_training_cluster_file.problems import ClusterFileError
from cluster_contract.tags import CLUSTER_TAG
from local_aws import LocalAws
from rehearsal import readback, report
from rehearsal.cdk_cli import CdkCli, CdkFailedError
from rehearsal.live_cluster import NAME, live_file, prices, write_assembly
from rehearsal.live_deletion import delete_all, line, what_is_left
from rehearsal.live_eks import EKS, EKS_ASKS, EksQuestion, desired_size, eks_zones, start_node
from rehearsal.live_facts import Facts, read_facts
from rehearsal.live_outcomes import Deployed, Outcome, judge, refusals
from rehearsal.live_questions import questions
from rehearsal.live_reports import REPORTS, what_may_be_reported
from rehearsal.preparation import prepare

# Longer than the check takes, with room for a file system that is slow to come.
_RESERVED_FOR = timedelta(hours=3)
_TOOLKIT = "CDKToolkit"
_FOREIGN = (BotoCoreError, ClientError, CdkFailedError)
_FOUNDATION, _CLUSTER = "foundation", "cluster"
_PARTS = {
    _FOUNDATION: "Does AWS make the network and the file system, as the library asks for them?",
    _CLUSTER: "Does AWS make the functions, the alarms, the runbook and an empty group?",
}


@dataclass(frozen=True, kw_only=True)
class Place:
    """An account that the stacks are deployed to.

    Attributes:
        cluster: The cluster file.
        cdk: The CDK CLI, with the account's credentials.
        client: Makes clients of the account.
        eks: What is asked about EKS there. None: nothing.
    """

    cluster: ClusterFile
    cdk: CdkCli
    client: readback.Client
    eks: EksQuestion | None


def main(
    availability_zone: Annotated[str, typer.Option(help="Where to make it, such as us-east-1b.")],
    build: Annotated[Path, typer.Option(help="Where logs and live.json are written to.")] = Path("build"),
    eks: Annotated[bool, typer.Option("--eks", help="Ask about EKS too, with a control plane and a node.")] = False,
    delete: Annotated[bool, typer.Option("--delete", help="Only delete what an earlier check has left.")] = False,
) -> None:
    """Create a small, empty cluster on AWS, compare it with the local AWS, and delete it with its file system."""
    console, workspace = report.make_console(), build / "live"
    workspace.mkdir(parents=True, exist_ok=True)
    try:
        check = LiveCheck(availability_zone, workspace.resolve(), console, eks=eks)
        if not delete:
            check.confirm()
    except (ValueError, ClusterFileError, *_FOREIGN) as error:
        sys.exit(f"error: {line(error)}")
    outcomes: dict[str, Outcome] = {}
    try:
        if not delete:
            check.run(outcomes)
    finally:  # whatever ends the check: nothing that bills is left in silence
        left = check.delete()
        check.show(outcomes, left)
        stacks = {name: outcome.to_json() for name, outcome in outcomes.items()}
        text = json.dumps({"stacks": stacks, "left": left}, indent=2)
        (build / "live.json").write_text(f"{text}\n", encoding="utf-8")
    sys.exit(1 if left or not all(outcome.expected for outcome in outcomes.values()) else 0)


class LiveCheck:
    """One check, in one account and region."""

    def __init__(self, zone: str, workspace: Path, console: Console, *, eks: bool) -> None:
        """Find out whose credentials these are.

        Args:
            zone: The Availability Zone.
            workspace: A directory for cloud assemblies and logs.
            console: Where everything is shown.
            eks: Whether it asks about EKS too.

        Raises:
            BotoCoreError: There are no credentials.
            ClientError: They are not valid.
            ClusterFileError: The zone is none.
        """
        self._zone, self._workspace, self._console, self._eks = zone, workspace, console, eks
        self._until = datetime.now(UTC) + _RESERVED_FOR
        self._region = live_file(zone).region
        self._session = boto3.Session(region_name=self._region)
        self._clients: dict[str, Any] = {}
        self._account = str(self._client("sts").get_caller_identity()["Account"])

    def confirm(self) -> None:
        """Say what it costs and where, and ask for it to be typed.

        Raises:
            ValueError: Something else was typed, an earlier check has left something, or CDK was never bootstrapped.
        """
        if not readback.stacks(self._client, [_TOOLKIT]):
            raise ValueError(
                f"run this once: cdk bootstrap -c cluster=clusters/dev-box.yaml aws://{self._account}/{self._region}"
            )
        left = list(what_is_left(self._client))
        if left:
            raise ValueError(f"before a check nothing may be left: {'; '.join(left)}; run: {self._delete_command}")
        costs = prices(self._region, eks=self._eks)
        wanted = f"{sum(costs.values()):.2f} USD an hour in {self._region}"
        nodes, while_ = ("One t3.small starts", "an hour and a half") if self._eks else ("No node starts", "an hour")
        self._console.print(
            f"This makes the cluster {NAME} in the account {self._account}, in {self._zone}, and deletes it again. "
            f"{nodes}. While it is there, about {while_}, it bills:",
            soft_wrap=True,
        )
        for what, usd in costs.items():
            self._console.print(f"  {what}: {usd:.2f} USD an hour")
        self._console.print(f"To go on, type: {wanted}", soft_wrap=True)
        if sys.stdin.readline().strip() != wanted:
            raise ValueError(f"nothing was made: what was typed is not {wanted!r}")
        self._console.print(f"If this is cut off, run: {self._delete_command}", soft_wrap=True)

    def run(self, outcomes: dict[str, Outcome]) -> None:
        """Deploy to the local AWS and to AWS, stack by stack. Nothing is deleted yet.

        Args:
            outcomes: Where what is settled of each stack is put, as soon as it is.
        """
        self._console.print("Deploying it to the local AWS")
        with LocalAws(self._workspace / "local-aws.log", region=self._region) as aws:
            cluster = self._file(aws.account)
            prepare(cluster, aws)
            place = self._place(cluster, aws.environment(), aws.client)
            place.cdk.bootstrap()
            local = dict(self._deployed(place))
        place = self._place(self._file(self._account), os.environ, self._client)
        where = f"Deploying it to the account {self._account}: see {place.cdk.log}"
        self._console.print(where, soft_wrap=True)
        asked = self._asked(place.cluster)
        outcomes |= {name: judge(asks, local[name], None) for name, asks in asked.items()}
        for name, found in self._deployed(place):
            outcomes[name] = judge(asked[name], local[name], found)
            self._console.print(f"  {name}: {outcomes[name].verdict}")

    def delete(self) -> list[str]:
        """Delete all of it, going on where something fails, and return what is left, a sentence each."""
        self._console.print("Deleting it")
        return delete_all(self._client)

    def show(self, outcomes: Mapping[str, Outcome], left: Sequence[str]) -> None:
        """Say what came of it."""
        for name, outcome in outcomes.items():
            self._show(name, outcome)
        for sentence in left:
            self._console.print(f"left: {sentence}", soft_wrap=True, markup=False)
        if left:
            self._console.print(f"It may bill. Delete it with: {self._delete_command}", soft_wrap=True)
        else:
            self._console.print("Nothing is left of it.")

    def _show(self, name: str, outcome: Outcome) -> None:
        as_well = ", as on the local AWS" if outcome.expected else ""
        self._console.print(f"{name}: {outcome.asks} {outcome.verdict}{as_well}", soft_wrap=True, markup=False)
        for sentence in outcome.sentences:
            self._console.print(f"  {sentence}", soft_wrap=True, markup=False)

    @property
    def _delete_command(self) -> str:
        return f"make live ARGS='--availability-zone {self._zone} --delete'"

    def _asked(self, cluster: ClusterFile) -> Mapping[str, str]:
        return {**_PARTS, **questions(cluster), **({EKS: EKS_ASKS} if self._eks else {})}

    def _client(self, service: str) -> Any:
        if service not in self._clients:
            make: Any = self._session.client  # boto3's stubs know a fixed set of names
            self._clients[service] = make(service)
        return self._clients[service]

    def _file(self, account: str) -> ClusterFile:
        return live_file(self._zone, account=account, reserved_until=self._until)

    def _place(self, cluster: ClusterFile, environment: Mapping[str, str], client: readback.Client) -> Place:
        cdk = CdkCli(
            environment={**environment, "AWS_REGION": self._region, "AWS_DEFAULT_REGION": self._region},
            cluster_file=Path(os.devnull),
            synthesized=True,
            output=self._workspace / str(cluster.account),
            log=self._workspace / "cdk.log",
            account=str(cluster.account),
            region=self._region,
        )
        eks = EksQuestion(zones=eks_zones(client, self._zone)) if self._eks else None
        return Place(cluster=cluster, cdk=cdk, client=client, eks=eks)

    def _deployed(self, place: Place) -> Iterator[tuple[str, Deployed]]:
        """Deploy the stacks of an account one by one; without a foundation, nothing else can be asked."""
        write_assembly(place.cluster, place.cdk.output, place.eks)
        for name in self._asked(place.cluster):
            found = self._tried(place, name)
            yield name, found
            if name == _FOUNDATION and found.refusals:
                return

    def _tried(self, place: Place, name: str) -> Deployed:
        stack = f"{NAME}-{name}"
        try:
            place.cdk.deploy(stack, exclusively=True)
            if name == EKS:
                return Deployed(answers=list(self._resized(place, stack)))
            if name == REPORTS:
                said = what_may_be_reported(place.client, stack, place.cluster.name, self._region)
                return Deployed(answers=said)
            account, foundation = str(place.cluster.account), place.cluster.foundation_stack_name
            facts = read_facts(place.client, stack, account, uses=foundation)
            return Deployed(facts={**facts, **_running(place.client)})
        except _FOREIGN as error:
            return Deployed(refusals=refusals(place.client, stack, line(error)))

    def _resized(self, place: Place, stack: str) -> Iterator[str]:
        """Change a tag and then a label of a group with a node, and yield what became of the group's size."""
        assert place.eks is not None  # noqa: S101 - it is asked about EKS
        tagged = replace(place.eks, tag="second")
        for changed, question in (("tag", tagged), ("label", replace(tagged, label="second"))):
            start_node(place.client, stack)
            before = desired_size(place.client, stack)
            write_assembly(place.cluster, place.cdk.output, question)
            place.cdk.deploy(stack, exclusively=True)
            after = desired_size(place.client, stack)
            yield f"the group's desired size was {before} before the {changed} changed, and is {after} after it"


def _running(client: readback.Client) -> Facts:
    filters = [
        {"Name": f"tag:{CLUSTER_TAG}", "Values": [NAME]},
        {"Name": "instance-state-name", "Values": ["pending", "running"]},
    ]
    found = client("ec2").get_paginator("describe_instances").paginate(Filters=filters)
    return {"nodes of the check": {"running": len(list(found.search("Reservations[].Instances[]")))}}


if __name__ == "__main__":
    typer.run(main)
