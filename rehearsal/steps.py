"""The rehearsal itself: deploy, look, deploy again, destroy, and look at what was kept."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from time import monotonic
from typing import Any

from rich.console import Console
from rich.text import Text

from cdk_training_cluster_file import ClusterFile
from local_aws import LocalAws
from rehearsal import readback, report, slurm, verdicts
from rehearsal.account import Account
from rehearsal.batch_run import BatchRun
from rehearsal.billing import REGION, BillingStory, left_behind, show_billing, tell_billing_story
from rehearsal.cdk_cli import CdkCli, CdkFailedError
from rehearsal.checks import Deployment, differences
from rehearsal.checks.guardrails import WITHOUT_A_STORY
from rehearsal.idle_expectation import IdleExpectation, idle_nodes
from rehearsal.idle_report import show_idle
from rehearsal.idle_run import resume, tell_idle_story
from rehearsal.inventory import Inventory
from rehearsal.node_groups import node_groups
from rehearsal.outcome import Findings
from rehearsal.parts import PartsRemoval, without_parts
from rehearsal.preparation import prepare, put_objects
from rehearsal.repair_run import RepairRun, group_to_repair, show_repair
from rehearsal.shortage_run import Shortage, changed_file, group_to_shorten
from rehearsal.spend_run import show_spend, start_all, tell_spend_story
from rehearsal.storage_run import StorageRun
from rehearsal.templates import deployed_resources

# A first tick starts the groups and a second one finds them running; so many more would be a fault.
_MOST_TICKS = 6


class Rehearsal:
    """Takes one cluster file through its whole life on the local AWS."""

    def __init__(
        self,
        cluster: ClusterFile,
        *,
        cdk: CdkCli,
        aws: LocalAws,
        workspace: Path,
        console: Console,
        findings: Findings,
        parts_of: Path | None = None,
    ) -> None:
        """Prepare the rehearsal; nothing runs yet.

        Args:
            cluster: The cluster file.
            cdk: The CDK CLI, pointed at the local AWS.
            aws: The local AWS.
            workspace: A directory for functions' code and logs.
            console: Where progress and tables are shown.
            findings: Where results and differences are collected.
            parts_of: The cluster file, for a second cluster of it that loses its optional parts one after another.
                Default: - none.
        """
        self._cluster = cluster
        self._cdk = cdk
        self._aws = aws
        self._workspace = workspace
        self._console = console
        self._findings = findings
        self._leave_out = findings.not_rehearsed.append
        self._parts_of = parts_of
        self._account = Account(cluster, aws, workspace, findings)
        self._started = monotonic()

    def run(self) -> None:
        """Run every step; what differs is collected, a failing step ends the run.

        Raises:
            CdkFailedError: The CDK CLI failed.
            FunctionFailedError: A deployed function failed.
            LocalAwsError: The local AWS cannot hold what the file names.
        """
        cluster = self._cluster
        with self._step("Put there what the file names as yours: zone, images, capacity, network, buckets"):
            notes = prepare(cluster, self._aws)
        for note in notes:
            self._console.print(note, soft_wrap=True)
        with self._step("Bootstrap the account: cdk bootstrap"):
            self._cdk.bootstrap()
        theirs = self._account.inventory()
        with self._step("Synthesize, with CDK's own validation: cdk synth"):
            self._cdk.synth()
        with self._step(f"Deploy what is kept: cdk deploy {cluster.foundation_stack_name}"):
            self._cdk.deploy(cluster.foundation_stack_name, assembly=True)
        self._fill_made_bucket()
        alone = self._account.inventory()
        with self._step("Deploy the cluster: cdk deploy --all"):
            self._cdk.deploy(assembly=True)
        if slurm.need_all_nodes(self._aws, cluster.name):
            self._console.print("Jobs need all nodes that Slurm may launch.")
        ticks = self._power(at_least=2)
        found = self._account.read()
        self._findings.results.update(found, ticks=ticks)
        self._compare(found)
        report.show_deployed(self._console, found)
        slurm.show_queues(self._console, found["queues"], found["node_groups"])
        storage = self._storage()
        storage.tell(found, self._account.functions())
        found, alone = self._account.read(), self._with_what_training_wrote(alone)
        if self._cluster.orchestrator.batch is not None:
            self._run_batch_jobs()
        self._deploy_again(found)
        self._run_short()
        self._stop_idle_nodes()
        self._exceed_budget()
        self._repair_node()
        self._tick_others()
        story = self._keep_billing_alarms()
        whole = self._destroy_cluster(found, alone)
        if story is not None:
            left = list(left_behind(self._aws, story))
            self._differs(*left)
            self._console.print(
                f"Of the billing alarms in {REGION} {'something' if left else 'nothing'} is left; {len(story.made)} "
                "were there, one of them another team's."
            )
        self._destroy_foundation(theirs, whole)
        storage.tell_what_is_lost(found)
        if self._parts_of is not None:
            self._remove_parts(self._parts_of)
        self._findings.results["seconds"] = round(monotonic() - self._started, 1)

    def _storage(self) -> StorageRun:
        system = self._cluster.file_system
        return StorageRun(
            aws=self._aws,
            cluster=self._cluster.name,
            mount_point="" if system is None else system.mount_point,
            console=self._console,
            findings=self._findings,
            step=self._step,
            workspace=self._workspace,
        )

    def _run_batch_jobs(self) -> None:
        """Run each job of AWS Batch, and one while the cluster is stopped."""
        run = BatchRun.by(self._aws, self._account.functions()["cluster_power"][0])
        with self._step("Run jobs on AWS Batch, one of them submitted while the cluster is stopped"):
            run.run()
        run.show(self._console)
        self._findings.results["batch"] = run.told
        self._differs(*run.differences())

    def _with_what_training_wrote(self, inventory: Inventory) -> Inventory:
        """Return what there was before, its buckets as they are now."""
        now = self._account.inventory()["buckets"]
        return {**inventory, "buckets": {name: now.get(name) for name in inventory["buckets"]}}

    def _compare(self, found: Mapping[str, Any]) -> None:
        """Hold the account against the templates that were deployed."""
        pseudo = {
            "AWS::AccountId": self._aws.account,
            "AWS::Region": self._aws.region,
            "AWS::Partition": self._aws.client("sts").meta.partition,
        }
        resources = list(deployed_resources(self._cdk.output, self._aws.client, pseudo))
        zone = self._cluster.availability_zone
        self._differs(*differences(Deployment(self._aws.client, resources, found, zone)))

    def _tick_others(self) -> None:
        """Run each guardrail that has no story of its own once."""
        ticks = {}
        for package, (function, _) in self._account.functions().items():
            if package in WITHOUT_A_STORY:
                with self._step(f"Run the deployed function of {package}"):
                    ticks[package] = function({"action": "tick"})
        self._findings.results["guardrails"] = ticks

    def _differs(self, *differences: str) -> None:
        self._findings.differences.extend(differences)

    def _fill_made_bucket(self) -> None:
        made = [settings for settings in self._cluster.datasets if settings.bucket is None]
        if made:
            bucket = readback.output(self._aws.client, self._cluster.foundation_stack_name, "DatasetBucketName")
            for settings in made:
                with self._step(f"Put objects into s3://{bucket}/{settings.prefix}"):
                    put_objects(self._aws, bucket, settings.prefix)

    def _power(self, at_least: int) -> list[Any]:
        """Run the deployed power function's own code until every group has its size."""
        ticks: list[Any] = []
        if not at_least and self._account.is_up():
            return ticks
        power, _ = self._account.functions()["cluster_power"]
        while len(ticks) < _MOST_TICKS:
            with self._step(f"Run the deployed power function: tick {len(ticks) + 1}"):
                ticks.append({power.name: power({"action": "tick"})})
            if len(ticks) >= at_least and self._account.is_up():
                break
        return ticks

    def _run_short(self) -> None:
        """Deploy a changed template while EC2 lacks nodes, and start nodes whose launches Auto Scaling suspended."""
        group = group_to_shorten(node_groups(self._aws.client, self._cluster.name))
        if group is None:
            self._leave_out("a shortage of capacity: no Auto Scaling group has nodes that are bought On-Demand alone")
            return
        orders = readback.output(self._aws.client, self._cluster.cluster_stack_name, "PowerFunctionName")
        shortage = Shortage(self._aws, self._account.functions()["cluster_power"][0], orders, group)
        with self._step(f"Lose a node of {group['name']} while EC2 has no other, and run the power function"):
            shortage.begin()
        with self._step("Deploy a changed template while the node is missing: cdk deploy --all"):
            changed_file(self._cdk, self._workspace).deploy()
        with self._step("Let EC2 have the node again, and run the power function"):
            shortage.end()
        with self._step(f"Let Auto Scaling suspend the launches of {group['name']}, and start it"):
            shortage.suspend_and_start()
        nodes = node_groups(self._aws.client, self._cluster.name)
        self._findings.results.update(shortage=shortage.told, node_groups=nodes)
        self._differs(*shortage.differences())

    def _stop_idle_nodes(self) -> None:
        """Let nodes be idle until they are stopped; deploy, which wakes none of them; and bring them back."""
        functions = self._account.functions()
        if "cluster_idle" not in functions:
            self._leave_out("an idle stop: the file turns it off, or no node reports its use")
            return
        idle, configuration = functions["cluster_idle"]
        before = node_groups(self._aws.client, self._cluster.name)
        ids = [one for group in before for one in group["instance_ids"]]
        nodes = idle_nodes(before, readback.instances(self._aws.client, ids))
        with self._step("Let nodes work, be silent and idle, and run the deployed idle function until it is done"):
            story = tell_idle_story(self._aws, idle, IdleExpectation.of_function(configuration, nodes))
        show_idle(self._console, story)
        self._differs(*story.differences())
        self._findings.results["idle"] = story.results()
        if story.stopped:
            self._bring_back(before, story.stopped)

    def _exceed_budget(self) -> None:
        """Let the cluster's own dollars exceed its budget, and start what is stopped for that."""
        budget = self._cluster.to_budget()
        if budget is None:
            return
        client, name = self._aws.client, self._cluster.name
        orders = readback.output(client, self._cluster.cluster_stack_name, "PowerFunctionName")
        with self._step("Let instances cost more than the budget, and run the deployed spend function until resumed"):
            story = tell_spend_story(
                self._aws,
                self._account.functions()["cluster_spend"][0],
                budget,
                node_groups(client, name),
                zone=self._cluster.availability_zone,
                start=lambda: start_all(self._aws, orders),
                sizes=self._account.sizes,
            )
        show_spend(self._console, story)
        self._differs(*story.differences())
        self._findings.results["spend"] = story.results()

    def _repair_node(self) -> None:
        """Let a node report an Xid: it is repaired, or only reported, as the file's health policy says."""
        functions, policy = self._account.functions(), self._cluster.health
        health, configuration = functions["cluster_health"]
        group = group_to_repair(node_groups(self._aws.client, self._cluster.name))
        if group is None:
            self._leave_out("the repair of a broken node: no Auto Scaling group has nodes")
            with self._step("Run the deployed health function"):
                self._findings.results["health"] = health({"action": "tick"})
            return
        power, acts = functions["cluster_power"][0], policy is not None and policy.act
        run = RepairRun(self._aws, self._cluster.name, group, health=health, power=power, acts=acts)
        then = "is rebooted, verified, broken again and replaced" if acts else "is only reported"
        with self._step(f"Let a node of {group['name']} report an Xid through EventBridge: it {then}"):
            run.run(configuration["Environment"]["Variables"]["STATE_TABLE"])
        show_repair(self._console, run.story)
        self._differs(*run.story.differences())
        self._findings.results["health"] = run.story.results()

    def _keep_billing_alarms(self) -> BillingStory | None:
        """Let the billing alarms be made, changed by hand and repaired."""
        budget = self._cluster.to_budget()
        if budget is None:
            return None
        function, _ = self._account.functions()["billing_alarms"]
        with self._step(
            f"Run the deployed billing function, change its alarms in {REGION} by hand, and run it again"
        ):
            story = tell_billing_story(self._aws, function)
        show_billing(self._console, story)
        self._differs(*story.differences(budget))
        self._findings.results["billing"] = {"alarms": story.made, "said": story.said, "region": REGION}
        return story

    def _bring_back(self, before: list[dict[str, Any]], stopped: set[str]) -> None:
        """Deploy while nodes are stopped, and let people start them again."""
        sizes = self._account.sizes()
        with self._step("Deploy again while nodes are stopped: cdk deploy --all"):
            self._cdk.deploy(assembly=True)
            self._account.functions()["cluster_power"][0]({"action": "tick"})
        asleep = self._account.sizes()
        document = readback.runbook(self._aws.client, self._cluster.cluster_stack_name)
        with self._step("Start them again by the runbook: aws ssm start-automation-execution"):
            resumed = resume(self._aws, document)
        ticks = self._power(at_least=0)
        self._findings.results["idle"] |= {"sizes": sizes, "sizes_after_deploy": asleep, "resumed": resumed}
        self._differs(*verdicts.stopped_and_resumed(before, stopped, sizes, asleep, resumed))
        if not self._account.is_up():
            self._differs(f"after the resume the node groups have {self._account.sizes()} nodes; ticks: {len(ticks)}")

    def _deploy_again(self, before: dict[str, Any]) -> None:
        inventory = self._account.inventory()
        with self._step("Deploy again: cdk deploy --all"):
            said = self._cdk.deploy()
        ticks = self._power(at_least=1)
        after = self._account.read()
        unchanged = said.count("(no changes)")
        inventories = (inventory, self._account.inventory())
        changes = verdicts.changed_by_second_deployment(before, after, inventories, unchanged)
        self._differs(*changes)
        self._console.print(f"A second deployment changed {'something: see below' if changes else 'nothing'}.")
        self._findings.results["second_deployment"] = {
            "changed": changes,
            "stacks_unchanged": unchanged,
            "ticks": ticks,
        }

    def _destroy_cluster(self, found: dict[str, Any], alone: Inventory) -> Inventory:
        """Destroy the stack that comes and goes, and return what there is then."""
        name = self._cluster.cluster_stack_name
        with self._step(f"Destroy the nodes: cdk destroy {name}"):
            self._cdk.destroy(name)
        left, whole = self._account.read(), self._account.inventory()
        wrong = verdicts.cluster_destroyed(self._cluster, found, left, (alone, whole))
        self._differs(*wrong)
        self._console.print(f"{name} is gone; the foundation is {'not whole' if wrong else 'whole'}:")
        report.show_stacks(self._console, left["stacks"])
        self._findings.results["after_cluster_destroyed"] = left
        return whole

    def _destroy_foundation(self, theirs: Inventory, whole: Inventory) -> None:
        name = self._cluster.foundation_stack_name
        if self._cluster.termination_protection:
            self._refuse_then_allow(name)
        with self._step(f"Destroy the foundation: cdk destroy {name}"):
            self._cdk.destroy(name)
        left = self._account.inventory()
        if readback.stacks(self._aws.client, [name]):
            self._differs(f"stack {name} is still there")
        self._differs(*verdicts.foundation_destroyed(self._cluster, theirs, whole, left))
        kept = {kind: sorted(left[kind].keys() - theirs[kind].keys()) for kind in left}
        named = {kind: sorted(left[kind].keys() & theirs[kind].keys()) for kind in left}
        report.show_kept(self._console, kept, named)
        self._findings.results["kept"] = kept
        self._findings.results["untouched"] = named

    def _remove_parts(self, whole: Path) -> None:
        """Deploy the file once more under another name, and take its optional parts away."""
        removal = PartsRemoval(self._aws.client, lambda file: replace(self._cdk, cluster_file=file))
        removed: list[str] = []
        for part, file in without_parts(whole, self._workspace, "parts"):
            alone = "first the cluster by itself, then " if part.imported else ""
            what = f"Deploy it without {part.name}" if removed else "Deploy it anew under another name"
            with self._step(f"{what}: {alone}cdk deploy --all"):
                self._differs(*removal.remove(part, file))
            removed.append(part.name)
        with self._step("Destroy what is left of it"):
            removal.destroy(file)
        self._findings.results["removed_parts"] = removed[1:]

    def _refuse_then_allow(self, foundation: str) -> None:
        with self._step(f"Try to destroy {foundation}: its termination protection has to refuse"):
            try:
                self._cdk.destroy(foundation)
            except CdkFailedError as error:
                if "TerminationProtection" not in str(error):
                    raise
            else:
                self._differs(f"{foundation} could be destroyed in spite of its termination protection")
                return
        self._aws.client("cloudformation").update_termination_protection(
            StackName=foundation, EnableTerminationProtection=False
        )

    @contextmanager
    def _step(self, what: str) -> Iterator[None]:
        started = monotonic()
        with self._console.status(Text(what)):
            yield
        self._console.print(
            Text.assemble(
                (f"{monotonic() - self._started:5.1f} s", "dim"),
                f"  {what} ",
                (f"({monotonic() - started:.1f} s)", "dim"),
            ),
            soft_wrap=True,
        )
