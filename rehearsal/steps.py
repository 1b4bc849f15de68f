"""The rehearsal itself: deploy, look, deploy again, destroy, and look at what was kept."""

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from time import monotonic
from typing import Any

from rich.console import Console

from cdk_training_cluster.tags import CLUSTER_TAG
from cdk_training_cluster_stacks.cluster_file import ClusterFile
from rehearsal import readback, report
from rehearsal.cdk_cli import CdkCli, CdkFailedError
from rehearsal.expectation import deployed_differences
from rehearsal.functions import DeployedFunction
from rehearsal.local_aws import LocalAws
from rehearsal.templates import resource_types

# A first tick starts the groups and a second one finds them running; so many more would be a fault.
_MOST_TICKS = 6
_SAMPLE_OBJECTS = ("shard-00000.bin", "shard-00001.bin", "shard-00002.bin")


class Rehearsal:
    """Takes one cluster file through its whole life on the local AWS.

    Attributes:
        results: What is written to `build/rehearsal.json`.
        differences: What is not as the file says, a sentence each.
    """

    def __init__(self, cluster: ClusterFile, cdk: CdkCli, aws: LocalAws, workspace: Path, console: Console) -> None:
        """Prepare the rehearsal; nothing runs yet.

        Args:
            cluster: The cluster file.
            cdk: The CDK CLI, pointed at the local AWS.
            aws: The local AWS.
            workspace: A directory for functions' code and logs.
            console: Where progress and tables are shown.
        """
        self._cluster = cluster
        self._cdk = cdk
        self._aws = aws
        self._workspace = workspace
        self._console = console
        self._started = monotonic()
        self.results: dict[str, Any] = {"cluster": cluster.name}
        self.differences: list[str] = []

    def run(self) -> None:
        """Run every step; what differs is collected, a failing step ends the run.

        Raises:
            CdkFailedError: The CDK CLI failed.
            FunctionFailedError: A deployed function failed.
        """
        with self._step("Bootstrap the account: cdk bootstrap"):
            self._cdk.bootstrap()
        with self._step("Synthesize, with CDK's own validation: cdk synth"):
            self._cdk.synth()
        self._hydrate_existing()
        with self._step(f"Deploy what is kept: cdk deploy {self._cluster.foundation_stack_name}"):
            self._cdk.deploy(self._cluster.foundation_stack_name, assembly=True)
        self._hydrate_made()
        with self._step("Deploy the cluster: cdk deploy --all"):
            self._cdk.deploy(assembly=True)
        self._check_nothing_skipped()
        ticks = self._power(at_least=2)
        found = self._read()
        self.results.update(found, ticks=ticks)
        self.differences += deployed_differences(self._cluster, found)
        report.show_deployed(self._console, found)
        self._deploy_again(found)
        self._destroy()
        self.results["differences"] = self.differences
        self.results["seconds"] = round(monotonic() - self._started, 1)

    def _read(self) -> dict[str, Any]:
        client = self._aws.client
        systems = readback.file_systems(client, self._cluster.name)
        if len(systems) > 1:
            self.differences.append(f"there are {len(systems)} file systems, the file says one")
        system = systems[0] if systems else None
        stacks = readback.stacks(client, [self._cluster.foundation_stack_name, self._cluster.cluster_stack_name])
        return {
            "stacks": stacks,
            "resources": dict(
                sorted(sum((Counter(stack["resources"]) for stack in stacks.values()), Counter()).items())
            ),
            "node_groups": readback.node_groups(client, self._cluster.name),
            "file_system": system,
            "datasets": readback.datasets(client, system["id"]) if system else [],
        }

    def _hydrate_existing(self) -> None:
        s3 = self._aws.client("s3")
        for settings in self._cluster.datasets:
            if settings.bucket is not None:
                with self._step(f"Put objects into s3://{settings.bucket}/{settings.prefix}"):
                    s3.create_bucket(Bucket=settings.bucket, **_location(self._aws.region))
                    self._put_objects(settings.bucket, settings.prefix)

    def _hydrate_made(self) -> None:
        made = [settings for settings in self._cluster.datasets if settings.bucket is None]
        if made:
            outputs = self._aws.client("cloudformation").describe_stacks(
                StackName=self._cluster.foundation_stack_name
            )["Stacks"][0]["Outputs"]
            bucket = next(o["OutputValue"] for o in outputs if o["OutputKey"] == "DatasetBucketName")
            for settings in made:
                with self._step(f"Put objects into s3://{bucket}/{settings.prefix}"):
                    self._put_objects(bucket, settings.prefix)

    def _put_objects(self, bucket: str, prefix: str) -> None:
        for name in _SAMPLE_OBJECTS:
            self._aws.client("s3").put_object(Bucket=bucket, Key=f"{prefix}{name}", Body=name.encode())

    def _check_nothing_skipped(self) -> None:
        for stack, wanted in resource_types(self._cdk.output).items():
            found = Counter(
                resource["ResourceType"] for resource in readback.stack_resources(self._aws.client, stack)
            )
            self.differences += [
                f"stack {stack}: {count} {kind} in the template, {found[kind]} made"
                for kind, count in wanted.items()
                if found[kind] != count
            ]

    def _power(self, at_least: int) -> list[Any]:
        """Run the deployed functions' own code until every group has its size."""
        functions = [
            DeployedFunction(configuration, code, self._workspace, self._aws.environment())
            for configuration, code in readback.functions(
                self._aws.client, self._cluster.cluster_stack_name, self._aws.account, self._aws.region
            )
        ]
        ticks: list[Any] = []
        while len(ticks) < _MOST_TICKS:
            with self._step(f"Run the deployed functions: tick {len(ticks) + 1}"):
                ticks.append({function.name: function({"action": "tick"}) for function in functions})
            groups = readback.node_groups(self._aws.client, self._cluster.name)
            wanted = {settings.name: settings.count for settings in self._cluster.node_groups}
            if len(ticks) >= at_least and all(
                group["count_running"] == wanted.get(group["name"]) for group in groups
            ):
                break
        return ticks

    def _deploy_again(self, before: dict[str, Any]) -> None:
        with self._step("Deploy again: cdk deploy --all"):
            said = self._cdk.deploy()
        ticks = self._power(at_least=1)
        after = self._read()
        changed = [key for key in before if before[key] != after[key]]
        self.differences += [f"a second deployment changed {key}" for key in changed]
        unchanged = said.count("(no changes)")
        if unchanged != len(before["stacks"]):
            self.differences.append(
                f"a second deployment found {unchanged} stacks unchanged, not {len(before['stacks'])}"
            )
        self._console.print(f"A second deployment changed {', '.join(changed) or 'nothing'}.")
        self.results["second_deployment"] = {
            "changed": changed,
            "stacks_unchanged": unchanged,
            "ticks": ticks,
        }

    def _destroy(self) -> None:
        cluster, foundation = self._cluster.cluster_stack_name, self._cluster.foundation_stack_name
        with self._step(f"Destroy the nodes: cdk destroy {cluster}"):
            self._cdk.destroy(cluster)
        found = self._read()
        if list(found["stacks"]) != [foundation] or found["node_groups"]:
            self.differences.append(
                f"after cdk destroy {cluster} there is still {found['node_groups'] or found['stacks']}"
            )
        if found["file_system"] != self.results["file_system"] or found["datasets"] != self.results["datasets"]:
            self.differences.append("destroying the cluster stack changed the file system or its datasets")
        self._console.print(f"{cluster} is gone; the foundation is whole:")
        report.show_stacks(self._console, found["stacks"])
        self.results["after_cluster_destroyed"] = found
        if self._cluster.termination_protection:
            self._refuse_then_allow(foundation)
        with self._step(f"Destroy the foundation: cdk destroy {foundation}"):
            self._cdk.destroy(foundation)
        kept = self._kept()
        report.show_kept(self._console, kept)
        self.results["kept"] = kept
        self.differences += self._not_kept(kept)

    def _refuse_then_allow(self, foundation: str) -> None:
        with self._step(f"Try to destroy {foundation}: its termination protection has to refuse"):
            try:
                self._cdk.destroy(foundation)
            except CdkFailedError as error:
                if "TerminationProtection" not in str(error):
                    raise
            else:
                self.differences.append(f"{foundation} could be destroyed in spite of its termination protection")
        self._aws.client("cloudformation").update_termination_protection(
            StackName=foundation, EnableTerminationProtection=False
        )

    def _kept(self) -> dict[str, list[str]]:
        ec2, filters = (
            self._aws.client("ec2"),
            [{"Name": f"tag:{CLUSTER_TAG}", "Values": [self._cluster.name]}],
        )
        gateways = ec2.describe_nat_gateways(Filters=[*filters, {"Name": "state", "Values": ["available"]}])
        return {
            "file systems": [s["id"] for s in readback.file_systems(self._aws.client, self._cluster.name)],
            "VPCs": [vpc["VpcId"] for vpc in ec2.describe_vpcs(Filters=filters)["Vpcs"]],
            "subnets": [subnet["SubnetId"] for subnet in ec2.describe_subnets(Filters=filters)["Subnets"]],
            "security groups": [
                group["GroupId"] for group in ec2.describe_security_groups(Filters=filters)["SecurityGroups"]
            ],
            "buckets": sorted(
                bucket["Name"]
                for bucket in self._aws.client("s3").list_buckets()["Buckets"]
                if not bucket["Name"].startswith("cdk-")
            ),
            "NAT gateways": [gateway["NatGatewayId"] for gateway in gateways["NatGateways"]],
            "nodes": [
                i["InstanceId"]
                for i in readback.instances(self._aws.client, {f"tag:{CLUSTER_TAG}": self._cluster.name})
            ],
        }

    def _not_kept(self, kept: dict[str, list[str]]) -> list[str]:
        differences = [
            f"{what} that bill by the hour were left: {kept[what]}"
            for what in ("NAT gateways", "nodes")
            if kept[what]
        ]
        if self._cluster.file_system is not None:
            wanted = (
                ["file systems"] if self._cluster.network else ["file systems", "VPCs", "subnets", "security groups"]
            )
            differences += [f"the {what} were not kept" for what in wanted if not kept[what]]
        if self._cluster.datasets and not kept["buckets"]:
            differences.append("the buckets were not kept")
        return differences

    @contextmanager
    def _step(self, what: str) -> Iterator[None]:
        started = monotonic()
        with self._console.status(what):
            yield
        self._console.print(
            f"[dim]{monotonic() - self._started:5.1f} s[/dim]  {what} [dim]({monotonic() - started:.1f} s)[/dim]",
            highlight=False,
        )


def _location(region: str) -> dict[str, Any]:
    # S3 takes the location of every region but its first.
    return {} if region == "us-east-1" else {"CreateBucketConfiguration": {"LocationConstraint": region}}
