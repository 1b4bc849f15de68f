"""What AWS Batch adds to a cluster: compute environments, job queues and job definitions."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from aws_cdk import Fn, RemovalPolicy
from aws_cdk import aws_batch as batch
from aws_cdk import aws_iam as iam
from aws_cdk import aws_logs as logs
from constructs import Construct

from cdk_training_cluster.cluster.base import ClusterBase, SharedParts
from cdk_training_cluster.cluster.orchestrator import Orchestrator, Output
from cdk_training_cluster.core.acknowledgements import acknowledge
from cdk_training_cluster.nodes import launch_dialect
from cdk_training_cluster.nodes.fleet import Fleet, NodeSetup
from cdk_training_cluster.nodes.fleet_owners import MadeOwner
from cdk_training_cluster.nodes.job_role import make_job_role
from cdk_training_cluster.nodes.launch_dialect import LaunchTemplateDialect
from cdk_training_cluster.nodes.node_fleet import NodeFleet
from cdk_training_cluster.nodes.node_group import NodeGroup
from cdk_training_cluster.nodes.node_role import make_node_role
from cdk_training_cluster.nodes.orchestrator_kind import OrchestratorKind
from cdk_training_cluster.nodes.owners import Launch
from cdk_training_cluster.nodes.reserved import Reserved
from cdk_training_cluster.nodes.rules import ClusterContext
from cdk_training_cluster.orchestrators.batch.environments import agent_part, environment_name, make_environment
from cdk_training_cluster.orchestrators.batch.job_definitions import make_job_definition, submit_command
from cdk_training_cluster.orchestrators.batch.rules import BATCH_RULES, BatchContext
from cdk_training_cluster.orchestrators.batch.settings import BatchJob, BatchQueue, BatchSettings
from cdk_training_cluster.orchestrators.batch.template_rules import REASONS
from cdk_training_cluster.validation.rule import Level, Problem, broken
from cluster_contract.owners import OwnerKind, OwnerSettings

_ECS_POLICY = "service-role/AmazonEC2ContainerServiceforEC2Role"


class BatchOrchestrator(Orchestrator):
    """Make what AWS Batch adds to one cluster.

    Attributes:
        batch: The settings.
        queues: The job queues, by name, once they are made.
        job_definitions: The job definitions, by name, once they are made.
        log_group: Where jobs' output goes, once it is made.
    """

    log_group: logs.LogGroup

    def __init__(self, settings: BatchSettings) -> None:
        """Take the settings.

        Args:
            settings: The settings.
        """
        self.batch = settings
        self.queues: dict[str, batch.CfnJobQueue] = {}
        self.job_definitions: dict[str, batch.CfnJobDefinition] = {}
        self._environments: dict[str, batch.CfnComputeEnvironment] = {}

    @property
    def kind(self) -> OrchestratorKind:
        """Batch."""
        return OrchestratorKind.BATCH

    def problems(self, together: ClusterContext) -> Iterator[Problem]:
        """Yield what is wrong with the settings, by themselves and beside the node groups."""
        yield from broken(BATCH_RULES, BatchContext(batch=self.batch, cluster=together))

    def warnings(self, together: ClusterContext) -> Iterator[Problem]:
        """Yield what is allowed and will surprise."""
        yield from broken(BATCH_RULES, BatchContext(batch=self.batch, cluster=together), level=Level.WARNING)

    def make_role(self, base: ClusterBase) -> iam.Role:
        """Make the nodes' role, with which the ECS agent takes jobs."""
        role = make_node_role(base.scope)
        role.add_managed_policy(iam.ManagedPolicy.from_aws_managed_policy_name(_ECS_POLICY))
        acknowledge(
            role,
            f"AwsSolutions-IAM4[Policy::arn:<AWS::Partition>:iam::aws:policy/{_ECS_POLICY}]",
            "The policy that AWS Batch asks for, which AWS extends as the ECS agent needs more.",
        )
        return role

    def make_job_role(self, base: ClusterBase, role: iam.Role) -> iam.Role:  # noqa: ARG002 - containers do not get it from nodes
        """Make the role of the jobs' containers."""
        return make_job_role(base.scope, services=["ecs-tasks.amazonaws.com"])

    def make_control(self, base: ClusterBase, shared: SharedParts, together: ClusterContext) -> None:  # noqa: ARG002 - the settings say it
        """Make the log group of the jobs' output."""
        self.log_group = logs.LogGroup(
            base.scope,
            "JobLogs",
            retention=logs.RetentionDays.THREE_MONTHS,
            encryption_key=base.encryption_key,
            removal_policy=RemovalPolicy.DESTROY,
        )

    def dialect(self, node_group: NodeGroup) -> LaunchTemplateDialect:
        """Return what launch templates for Batch say: the image is Batch's own, or the user's."""
        return replace(launch_dialect.BATCH, image=node_group.machine_image is not None)

    def node_setup(self, fleet: Fleet) -> NodeSetup:  # noqa: ARG002 - the same for all
        """Return what differs in the set-up of nodes: the ECS agent's settings."""
        return NodeSetup(user_data_parts=[agent_part()])

    def make_owner(self, fleet: Fleet, launches: Sequence[Launch], reserved: Reserved) -> MadeOwner:  # noqa: ARG002 - the template names what is reserved
        """Make a node group's compute environment."""
        environment = make_environment(
            fleet,
            launches[0],
            scale_down_delay=self.batch.scale_down_delay,
            update_timeout=self.batch.update_timeout,
        )
        self._environments[fleet.node_group.name] = environment
        settings = OwnerSettings(
            kind=OwnerKind.BATCH_COMPUTE_ENVIRONMENT, id=environment_name(environment), scheduler_sized=True
        )
        return MadeOwner(resource=environment, settings=settings)

    def make_rest(self, base: ClusterBase, shared: SharedParts, fleets: Mapping[str, NodeFleet]) -> None:
        """Make the queues and the job definitions."""
        for queue in self.batch.all_queues:
            self.queues[queue.name] = self._make_queue(base.scope, queue)
        for job in self.batch.jobs:
            self.job_definitions[job.name] = make_job_definition(
                base.scope,
                job,
                fleet=fleets[self._group_of(job)],
                name=f"{base.cluster_name}-{job.name}",
                role=shared.job_role,
                log_group=self.log_group,
                environment={} if base.checkpoints is None else base.checkpoints.environment,
            )

    def outputs(self, cluster_name: str) -> Iterator[Output]:
        """Yield the queues' names, and the command that submits each job."""
        for name in self.queues:
            yield Output(name=f"JobQueue{_camel(name)}", value=self._queue_name(name), description="A job queue")
        for job in self.batch.jobs:
            queue = self._queue_of(job)
            yield Output(
                name=f"Submit{_camel(job.name)}Command",
                value=submit_command(
                    self._queue_name(queue.name),
                    f"{cluster_name}-{job.name}",
                    job.name,
                    shared=bool(queue.shares),
                ),
                description=f"Submits the job {job.name}",
            )

    def _make_queue(self, scope: Construct, queue: BatchQueue) -> batch.CfnJobQueue:
        policy = None if not queue.shares else _make_policy(scope, queue.name, queue.shares)
        names = list(self._environments) if queue.node_groups is None else queue.node_groups
        capacity, never = self.batch.capacity_timeout, self.batch.unplaceable_timeout
        limits = [(reason, capacity if reason.startswith("CAPACITY") else never) for reason in REASONS]
        return batch.CfnJobQueue(
            scope,
            f"Queue{queue.name}",
            priority=queue.priority,
            state="ENABLED",
            scheduling_policy_arn=None if policy is None else policy.attr_arn,
            compute_environment_order=[
                batch.CfnJobQueue.ComputeEnvironmentOrderProperty(
                    compute_environment=self._environments[name].ref, order=order
                )
                for order, name in enumerate(names, start=1)
            ],
            job_state_time_limit_actions=[
                batch.CfnJobQueue.JobStateTimeLimitActionProperty(
                    action="CANCEL", state="RUNNABLE", reason=reason, max_time_seconds=int(limit.to_seconds())
                )
                for reason, limit in limits
            ],
        )

    def _queue_name(self, name: str) -> str:
        return Fn.select(1, Fn.split("/", self.queues[name].ref))

    def _group_of(self, job: BatchJob) -> str:
        return next(iter(self._environments)) if job.node_group is None else job.node_group

    def _queue_of(self, job: BatchJob) -> BatchQueue:
        name = self._group_of(job)
        return next(each for each in self.batch.all_queues if each.node_groups is None or name in each.node_groups)


def _make_policy(scope: Construct, name: str, shares: Mapping[str, float]) -> batch.CfnSchedulingPolicy:
    return batch.CfnSchedulingPolicy(
        scope,
        f"Shares{name}",
        fairshare_policy=batch.CfnSchedulingPolicy.FairsharePolicyProperty(
            share_distribution=[
                batch.CfnSchedulingPolicy.ShareAttributesProperty(share_identifier=identifier, weight_factor=weight)
                for identifier, weight in shares.items()
            ]
        ),
    )


def _camel(name: str) -> str:
    return "".join(part[:1].upper() + part[1:] for part in name.replace("_", "-").split("-"))
