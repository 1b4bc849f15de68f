"""The construct that composes a training cluster; everything it does is done by the parts."""

from collections.abc import Sequence

import jsii
from aws_cdk import Duration, Names, RemovalPolicy, Stack, Tags
from aws_cdk import aws_cloudwatch as cloudwatch
from aws_cdk import aws_dynamodb as dynamodb
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_iam as iam
from aws_cdk import aws_kms as kms
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_sns as sns
from aws_cdk import aws_ssm as ssm
from constructs import Construct

from cdk_training_cluster.cluster.base import ClusterBase
from cdk_training_cluster.cluster.checks import check_cluster, check_name, cluster_warnings
from cdk_training_cluster.cluster.node_parts import (
    make_file_system,
    make_node_groups,
    make_shared_parts,
    shared_file_system,
)
from cdk_training_cluster.cluster.orchestrator import NoOrchestrator, Orchestrator
from cdk_training_cluster.cluster.outputs import NamedParts, describe_parts, make_outputs
from cdk_training_cluster.cluster.parts import (
    add_backup_topic,
    guardrail_arguments,
    make_billing_alarms,
    make_dashboard,
    make_hydration,
    make_idle_stop,
    make_power,
    make_spend,
    start_with_groups,
    watch_checkpoints,
)
from cdk_training_cluster.core.acknowledgements import warn
from cdk_training_cluster.core.state import ClusterState
from cdk_training_cluster.functions import Guardrail
from cdk_training_cluster.functions.look_permissions import grant_look
from cdk_training_cluster.guardrails import (
    BillingAlarms,
    Budget,
    CheckpointWatch,
    ClusterSpend,
    DatasetHydration,
    IdleStop,
    ResumeDocument,
    WeeklyCostReport,
)
from cdk_training_cluster.guardrails.health import HealthPolicy, NodeHealth
from cdk_training_cluster.guardrails.money.cost_budget import CostBudget, cost_budget_where_possible
from cdk_training_cluster.guardrails.power import ClusterPower
from cdk_training_cluster.instance_types import InstanceTypeInfo
from cdk_training_cluster.network import ClusterNetwork
from cdk_training_cluster.nodes import IdlePolicy, Mount, NodeFleet, NodeGroup, Schedule, utilization_metric
from cdk_training_cluster.nodes.bootstrap_alarm import make_bootstrap_alarm
from cdk_training_cluster.nodes.runs import make_run_alarms
from cdk_training_cluster.observability import ClusterDashboard
from cdk_training_cluster.observability.prometheus import ClusterPrometheus, Observability
from cdk_training_cluster.storage import CheckpointStore, Dataset, ExportedCheckpoints, TrainingFileSystem
from cdk_training_cluster.validation.bounds import ClusterName
from cdk_training_cluster.validation.kinds import checked
from cdk_training_cluster.validation.words import words_of
from cluster_contract.checkpoints import place_parameter
from cluster_contract.hydration import progress_parameter
from cluster_contract.tags import CLUSTER_TAG


@jsii.implements(ec2.IConnectable, iam.IGrantable)
class TrainingCluster(Construct):
    """Make a training cluster: network, node groups, file system with data sets, and the functions that watch it.

    Nodes start within minutes after the deployment: the power function brings every group to its count, says in
    plain words what EC2 cannot give, and leaves alone what an operator has changed. A node group that is idle is
    stopped half an hour after a warning, which comes after an hour; `idle_policy` says otherwise.

    Resources: what `ClusterNetwork`, `NodeFleet`, `TrainingFileSystem`, `ClusterState`, `ClusterPower`, `IdleStop`,
    `NodeHealth`, `BillingAlarms`, `CheckpointWatch`, `DatasetHydration`, `ClusterSpend`, `CostBudget`,
    `ResumeDocument` and `ClusterDashboard` make, one instance role and profile, a role for jobs, an SNS topic for
    alerts, a DynamoDB table for runs, and SSM parameters for the place of the checkpoints and for the names of the
    parts, by which the command `training-cluster` finds them.

    Attributes:
        orchestrator: The orchestrator that launches the nodes.
        job_role: The jobs' role. On HyperPod with Slurm it is `role`, that of the nodes.
        idle_stop: What stops idle nodes. None: every node group's policy is off.
        health: What reports and repairs broken nodes.
        billing_alarms: What keeps the billing alarms. None: there is no budget.
        hydration: What preloads and releases data sets. None: no data set asks for it.
        spend: What counts the cluster's dollars. None: likewise.
        checkpoints: Where training keeps its checkpoints. None: nowhere.
        checkpoint_watch: What alarms when accelerators work without a new checkpoint. None: no place for them.
        cost_report: What sends a report of the cluster's bill each week. None: the budget asks for none.
        dashboard: The CloudWatch dashboard. None: it is not wanted.
        cost_budget: The AWS budget of the cluster's own bill. None: there is no budget, or CloudFormation cannot make
            one in the region.
        runs_table: The table in which nodes of a training run find each other, by `cdk-training-cluster-job`.
        prometheus: The workspace of Prometheus that the nodes write to. None: `observability` is not given.

    Source: https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/efa-start.html
    """

    @checked
    def __init__(
        self,
        scope: Construct,
        id: str,
        *,
        node_groups: Sequence[NodeGroup],
        availability_zone: str | None = None,
        network: ClusterNetwork | None = None,
        datasets: Sequence[Dataset] = (),
        file_system: TrainingFileSystem | None = None,
        checkpoints: CheckpointStore | None = None,
        cluster_name: ClusterName | None = None,
        alert_topic: sns.ITopic | None = None,
        backup_alert_topic: sns.ITopic | None = None,
        state: ClusterState | None = None,
        idle_policy: IdlePolicy | None = None,
        schedule: Schedule | None = None,
        budget: Budget | None = None,
        health: HealthPolicy | None = None,
        instance_type_facts: Sequence[InstanceTypeInfo] = (),
        powertools_layer: lambda_.ILayerVersion | None = None,
        encryption_key: kms.IKey | None = None,
        observability: Observability | None = None,
        dashboard: bool = True,
        _orchestrator: Orchestrator | None = None,
    ) -> None:
        """Make the cluster.

        Args:
            scope: The parent construct.
            id: The construct's id.
            node_groups: What the cluster is made of; at least one.
            availability_zone: The zone to make a network in, such as `us-east-1b`. Either this or `network`.
            network: An existing network, or one from another stack. Either this or `availability_zone`.
            datasets: What to link to the file system. Default: - nothing.
            file_system: The file system that the nodes mount. Default: - one of 1200 GiB is made if there are
                data sets, else none.
            checkpoints: Where training keeps its checkpoints: the nodes get its environment variable, and what
                jobs need of its bucket; an alarm goes off when accelerators work without a new one.
                Default: - nowhere.
            cluster_name: The value of the tag `cdk-training-cluster:cluster` and of the metrics' dimension
                `Cluster`; unique in account and region. Default: - made of the construct's path.
            alert_topic: Where alarms and functions report; it must let CloudWatch publish, and with a budget AWS
                Budgets. Default: - a topic is made; subscribe to `alert_topic`.
            backup_alert_topic: Gets each alarm too, and what functions cannot publish to `alert_topic`: a standard
                topic of the cluster's region that other people or tools watch. Default: - none.
            state: Where functions remember what was ordered and what they did. One of another stack outlives the
                cluster. Default: - a table is made, and deleted with the stack.
            idle_policy: When nodes are idle and what becomes of them then; a node group's own policy says what
                differs. Default: - see `IdlePolicy`; `IdlePolicy.off()` stops none.
            schedule: When nodes run; a node group's own schedule replaces it. Default: - always.
            budget: What may be spent in a month; billing alarms in us-east-1 watch the account's charges, and an AWS
                budget the cluster's bill. Default: - none.
            health: What the health function may do with broken nodes. Default: - it reports them only; see
                `HealthPolicy`.
            instance_type_facts: Facts about instance types that the catalog does not have. Default: - none.
            powertools_layer: A layer with Powertools for the functions' runtime, for regions where AWS publishes
                none. Default: - AWS's public layer.
            encryption_key: The KMS key that encrypts what is made here: alert topic, logs, functions' environments
                and queues, the state table, nodes' root volumes and network flow log. A key that is made in CDK lets
                AWS's services use it; see docs/security.md for the policy of any other. It can be given, changed
                and removed later. A file system keeps the key that `TrainingFileSystem` gave it.
                Default: - keys that AWS owns or manages.
            observability: What the nodes are observed with beside CloudWatch: `Observability.prometheus()`.
                Default: - nothing.
            dashboard: Whether a CloudWatch dashboard is made; from an account's fourth on, each costs 3 USD a month.
                Default: - it is.
            _orchestrator: The orchestrator, which a subclass gives. Default: - Auto Scaling groups
                launch them.

        Raises:
            ValueError: There is no network or there are two, no node group or two of one name, another cluster of the
                name, or a part refuses its settings; every reason, a line each.
        """
        super().__init__(scope, id)
        if isinstance(checkpoints, ExportedCheckpoints):
            file_system = shared_file_system(file_system, checkpoints)
        self.orchestrator: Orchestrator = _orchestrator or NoOrchestrator()
        together = check_cluster(
            node_groups=node_groups,
            availability_zone=availability_zone,
            network=network,
            file_system=file_system,
            idle_policy=idle_policy,
            schedule=schedule,
            instance_type_facts=instance_type_facts,
            words=words_of(self),
            orchestrator=self.orchestrator,
            zone_id=None if checkpoints is None else checkpoints.zone_id,
        )
        for rule, sentence in cluster_warnings(together, self.orchestrator).items():
            warn(self, rule, sentence)
        self.cluster_name: str = cluster_name or Names.unique_resource_name(self, max_length=64, separator="-")
        check_name(self, self.cluster_name)
        self.network: ClusterNetwork = network or ClusterNetwork(
            self, "Network", availability_zone=availability_zone, encryption_key=encryption_key
        )
        self.file_system: TrainingFileSystem | None = make_file_system(self, self.network, file_system, datasets)
        self.encryption_key: kms.IKey | None = encryption_key
        self.checkpoints = checkpoints
        base = self._base = ClusterBase(
            scope=self,
            cluster_name=self.cluster_name,
            network=self.network,
            file_system=self.file_system,
            encryption_key=encryption_key,
            checkpoints=checkpoints,
        )
        shared = make_shared_parts(base, self.orchestrator, alert_topic, observability, budgets=budget is not None)
        self.role: iam.Role = shared.role
        self.job_role: iam.Role = shared.job_role
        self.instance_profile: iam.InstanceProfile = shared.instance_profile
        self.alert_topic: sns.ITopic = shared.alert_topic
        self.prometheus: ClusterPrometheus | None = shared.prometheus
        self.runs_table: dynamodb.Table = shared.runs_table
        self.orchestrator.make_control(base, shared, together)
        fleets = self._node_groups = make_node_groups(base, shared, together, self.orchestrator, powertools_layer)
        self.orchestrator.make_rest(base, shared, fleets)
        # Of no use to another stack, whose node groups are others.
        self.state: ClusterState = state or ClusterState(
            self, "State", encryption_key=encryption_key, removal_policy=RemovalPolicy.DESTROY
        )
        common = guardrail_arguments(base, shared, self.state, powertools_layer)
        self.power: ClusterPower = make_power(self, common, together, fleets)
        self.bootstrap_alarm: cloudwatch.Alarm = make_bootstrap_alarm(self, self.cluster_name, self.alert_topic)
        make_run_alarms(self, self.cluster_name, self.alert_topic)
        self.hydration: DatasetHydration | None = make_hydration(self, common, self.file_system, self.role)
        self.idle_stop: IdleStop | None = make_idle_stop(
            self, common, together, fleets, power=self.power, hydration=self.hydration, facts=instance_type_facts
        )
        self.health: NodeHealth = NodeHealth(self, "Health", **common, fleets=self.node_groups, policy=health)
        start_with_groups(self.power, self.node_groups)
        self.billing_alarms: BillingAlarms | None = make_billing_alarms(self, common, budget)
        self.resume_document: ResumeDocument = ResumeDocument(
            self, "Resume", cluster_name=self.cluster_name, node_groups=list(fleets), power=self.power
        )
        weekly = budget is not None and budget.weekly_report
        self.cost_report: WeeklyCostReport | None = WeeklyCostReport(self, "CostReport", **common) if weekly else None
        self.checkpoint_watch: CheckpointWatch | None = watch_checkpoints(self, common, checkpoints, self.job_role)
        # Last, since it counts what all the others cost.
        self.spend: ClusterSpend | None = make_spend(
            base,
            common,
            budget,
            orchestrator=self.orchestrator,
            fleets=fleets,
            power=self.power,
            counted=self._counted_elsewhere(),
            dashboards=int(dashboard),
        )
        self.cost_budget: CostBudget | None = cost_budget_where_possible(
            self, "CostBudget", budget=budget, cluster_name=self.cluster_name, alert_topic=self.alert_topic
        )
        guardrails = self.guardrails
        add_backup_topic(self, common, backup_alert_topic, guardrails=guardrails, queue=self.power.failed_events)
        self.dashboard: ClusterDashboard | None = (
            make_dashboard(base, self.node_groups, guardrails, self.orchestrator.rows()) if dashboard else None
        )
        self._named = NamedParts(
            cluster_name=self.cluster_name,
            guardrails=guardrails,
            shared=shared,
            security_group=self.network.security_group.security_group_id,
            state=self.state,
            resume_document=self.resume_document,
            dashboard=self.dashboard,
            cost_budget=self.cost_budget,
            orchestrator=self.orchestrator,
        )
        self.description: ssm.StringParameter = describe_parts(self, self._named)
        Tags.of(self).add(CLUSTER_TAG, self.cluster_name)

    @property
    def connections(self) -> ec2.Connections:
        """What all the nodes let in and out."""
        return self.network.connections

    @property
    def grant_principal(self) -> iam.IPrincipal:
        """The jobs' role, for `bucket.grant_read(cluster)` and the like."""
        return self.job_role.grant_principal

    @property
    def node_groups(self) -> tuple[NodeFleet, ...]:
        """The nodes of every group, in the order they were given."""
        return tuple(self._node_groups.values())

    def node_group(self, name: str) -> NodeFleet:
        """Return the nodes of one group.

        Args:
            name: The group's name.

        Raises:
            ValueError: There is no group of that name.
        """
        if name not in self._node_groups:
            raise ValueError(f"there is no node group {name!r}: the cluster has {', '.join(self._node_groups)}")
        return self._node_groups[name]

    @property
    def mount(self) -> Mount | None:
        """The file system that nodes mount, and where. None: there is no file system."""
        return self._base.mount

    @property
    def guardrails(self) -> tuple[Guardrail, ...]:
        """All the functions that watch the cluster, the power function first."""
        return tuple(child for child in self.node.children if isinstance(child, Guardrail))

    def make_outputs(self, scope: Construct | None = None) -> None:
        """Make the outputs that the documentation names: `AlertTopicArn`, `ResumeCommand`, a function's name for each
        guardrail, such as `PowerFunctionName`, and `ActivateCostTagCommand` where there is an AWS budget.

        Args:
            scope: Where to make them, such as the cluster itself, whose path then comes before their names: for a
                second cluster of a stack. Default: - the stack.
        """
        make_outputs(scope or Stack.of(self), self._named)

    def grant_power(self, grantee: iam.IGrantable) -> iam.Grant:
        """Let a principal stop, start, limit, terminate and ask about the nodes through the power function.

        With that goes what `grant_look` gives.

        Args:
            grantee: A role, user or function.
        """
        return self.power.grant_power(grantee).combine(self.grant_look(grantee))

    def grant_look(self, grantee: iam.IGrantable) -> iam.Grant:
        """Let a principal look at the cluster with `training-cluster status`, `events`, `logs` and `why`.

        It can change nothing, but have the functions look again. Checkpoints are listed where their bucket allows it
        too.

        Args:
            grantee: A role, user or function.
        """
        found = (progress_parameter(self.cluster_name), place_parameter(self.cluster_name))
        parameters = (self.description.parameter_name, *found)
        return grant_look(grantee, self.cluster_name, self.guardrails, parameters, self.runs_table)

    def grant_resume(self, grantee: iam.IGrantable) -> iam.Grant:
        """Let a principal start node groups again with the runbook of `resume_document`.

        Args:
            grantee: A role, user or function.
        """
        return self.resume_document.grant_start(grantee)

    def metric_gpu_utilization(
        self, *, statistic: str = "Average", period: Duration | None = None
    ) -> cloudwatch.Metric:
        """Return how busy the accelerators of the cluster are, in percent.

        GPUs, or NeuronCores where every node group has those; in a cluster of both, ask the `NodeFleet`s.

        Args:
            statistic: `Average` is over devices and time, `Maximum` the busiest device. Default: - `Average`.
            period: How much time a point covers. Default: - 5 minutes.
        """
        neuron = all(fleet.instance_type.has_neuron_devices for fleet in self.node_groups)
        return utilization_metric(self.cluster_name, neuron=neuron, statistic=statistic, period=period)

    def metric_idle_nodes(self) -> cloudwatch.Metric:
        """Return how many nodes are idle.

        Raises:
            ValueError: Every node group's policy is off, so that no function counts idle nodes.
        """
        if self.idle_stop is None:
            raise ValueError("there is no metric of idle nodes: every node group's idle_policy is IdlePolicy.off()")
        return self.idle_stop.metric_idle_nodes()

    def metric_missing_nodes(self) -> cloudwatch.Metric:
        """Return how many of the nodes that should run do not."""
        return self.power.metric_missing_nodes()

    def metric_surplus_nodes(self) -> cloudwatch.Metric:
        """Return how many nodes run on although they should not."""
        return self.power.metric_surplus_nodes()

    def _counted_elsewhere(self) -> list[object]:
        """Return what other clusters of the app count already: what clusters share is billed once."""
        others = [each for each in self.node.root.node.find_all() if isinstance(each, TrainingCluster)]
        # A cluster whose settings were refused is in the tree without its parts.
        counted = [each for each in others if each is not self and getattr(each, "spend", None) is not None]
        return [part for each in counted for part in (each.network, each.file_system)]
