"""The construct that hydrates data sets: its function, its tick, its alarms, and the document that nodes run."""

from collections.abc import Iterator
from datetime import timedelta
from typing import ClassVar, Unpack

from aws_cdk import Duration
from aws_cdk import aws_cloudwatch as cloudwatch
from aws_cdk import aws_iam as iam
from aws_cdk import aws_ssm as ssm
from constructs import Construct

from cdk_training_cluster.core.acknowledgements import acknowledge
from cdk_training_cluster.core.conditions import HERE
from cdk_training_cluster.core.dashboards.rows import DashboardRow, Panel, Unit
from cdk_training_cluster.core.times import to_time
from cdk_training_cluster.functions import (
    ClusterPermissions,
    Guardrail,
    GuardrailArguments,
    GuardrailSpec,
    Silence,
    Watch,
)
from cdk_training_cluster.functions.permissions import INSTANCES
from cdk_training_cluster.storage import Dataset, TrainingFileSystem
from cdk_training_cluster.validation.checks import is_unknown
from cdk_training_cluster.validation.kinds import checked
from cluster_contract.hydration import (
    COMMAND_SECONDS,
    DATASET_DIMENSION,
    HydratedDataset,
    HydrationFunctionSettings,
    HydrationMetric,
    progress_parameter,
)
from cluster_contract.metrics import FUNCTION_NAMESPACE, NODE_METRICS
from cluster_contract.state import StatePart
from cluster_contract.tags import CLUSTER_TAG

# Where a test puts a node's files, as in the bootstrap's scripts; on a node it is empty.
_COMMAND = "exec \"${ROOT:-}/usr/local/bin/cluster-node\" hydrate '{{ Request }}'"
_AS_NAG_SAYS = "<AWS::Region>:<AWS::AccountId>"


class DatasetHydration(Guardrail):
    """Make the function that restores the contents of data sets on the nodes, and releases what is not used.

    It waits for the link and for the import of names, has up to 16 nodes restore the files of each data set with
    `preload` through Systems Manager, checks at the end that all files have their contents, and notifies the alert
    topic once. The deployment waits for none of this. Nodes that go, throttling and failed tasks cost time only, and
    a new run restores only what is missing. Invoke the function with `{"action": "status"}` to see how far it is, and
    with `{"action": "run"}` for a new run. Once all is done it reads one item of DynamoDB a minute. With
    `release_after` it has FSx free, once a day, the space of files that the bucket has.

    Resources: what `ClusterFunction` makes, one `AWS::Scheduler::Schedule` with its role, two
    `AWS::CloudWatch::Alarm`s, for data sets that cannot be hydrated and for the function's silence; where a data set
    is preloaded, one `AWS::SSM::Document` that nodes run, and one `AWS::SSM::Parameter` with the progress.

    Attributes:
        document: What nodes run. None: no data set is preloaded.
        failed_alarm: Goes into ALARM when a data set could not be hydrated for 15 minutes.

    Sources: https://docs.aws.amazon.com/fsx/latest/LustreGuide/preload-file-contents-hsm-dra.html and
    https://docs.aws.amazon.com/systems-manager/latest/userguide/run-command.html
    """

    spec: ClassVar[GuardrailSpec] = GuardrailSpec(
        package="cluster_hydration",
        called="the hydration function",
        purpose="Restores the contents of the data sets of the training cluster $name, and reports its progress",
        output="HydrationFunctionName",
        every=timedelta(minutes=1),
        timeout=timedelta(seconds=50),
        keeps=StatePart.HYDRATION,
        silence=Silence(
            metric=HydrationMetric.SUCCESSFUL_TICKS,
            trouble="the hydration function has not succeeded for 15 minutes, so data sets may not be hydrated",
        ),
        watches=(
            Watch(
                id="FailedDatasets",
                metric=HydrationMetric.FAILED_DATASETS,
                trouble="for 15 minutes a data set could not be hydrated, so jobs that wait for it do not start, "
                "and their nodes are billed",
                remedy="Run `training-cluster status $name`, which names it with the reason; mend that, and "
                'invoke the function with {"action": "run"}',
            ),
        ),
    )

    @checked
    def __init__(
        self,
        scope: Construct,
        id: str,
        *,
        file_system: TrainingFileSystem,
        **arguments: Unpack[GuardrailArguments],
    ) -> None:
        """Make the function, its tick, its alarms and the document.

        Args:
            scope: The parent construct.
            id: The construct's id.
            file_system: The file system whose data sets are hydrated: those that it has by now.
            **arguments: As `GuardrailArguments` says. The nodes that restore also have the security group of the
                file system's network, as all nodes that the library launches.

        Raises:
            ValueError: A setting is of the wrong kind, or `ClusterFunction` refuses its settings.
        """
        super().__init__(scope, id, **arguments)
        self._file_system = file_system
        self._datasets = [each for each in file_system.datasets if each.is_maintained]
        self.document: ssm.CfnDocument | None = (
            self._make_document() if any(each.preload for each in self._datasets) else None
        )
        settings = HydrationFunctionSettings(
            cluster=self._cluster_name,
            file_system=file_system.file_system_id,
            mount_point=file_system.mount_point,
            security_group=file_system.network.security_group.security_group_id,
            document="" if self.document is None else self.document.ref,
            datasets=tuple(map(_maintained, self._datasets)),
            topic_arn=self._alert_topic.topic_arn,
            state_table=self.state.table_name,
        )
        self._make(settings, self._grant)
        self.failed_alarm: cloudwatch.Alarm = self._alarms["FailedDatasets"]

    def describe(self) -> Iterator[str]:
        """See `Guardrail.describe`."""
        for dataset in self._datasets:
            does = [
                "preloaded by the nodes" if dataset.preload else "",
                "" if dataset.release_after is None else f"freed after {dataset.release_after.to_human_string()}",
            ]
            yield f"Dataset {dataset.directory}: {', '.join(filter(None, does))}"

    def dashboard_row(self) -> DashboardRow:
        """See `Guardrail.dashboard_row`."""
        return DashboardRow(
            title="Data sets",
            panels=[
                Panel(
                    title="Restored while it goes on",
                    unit=Unit.PERCENT,
                    lines=[self._line_for_each(HydrationMetric.PERCENT, DATASET_DIMENSION, "Maximum")],
                    maximum=100,
                ),
                Panel(
                    title="Restored files",
                    unit=Unit.COUNT,
                    lines=[self._line_for_each(HydrationMetric.FILES, DATASET_DIMENSION, "Maximum")],
                ),
                Panel(
                    title="Restored bytes",
                    unit=Unit.BYTES,
                    lines=[self._line_for_each(HydrationMetric.BYTES, DATASET_DIMENSION, "Maximum")],
                ),
                Panel(
                    title="Restored each second",
                    unit=Unit.BYTES_PER_SECOND,
                    lines=[self._line_for_each(HydrationMetric.BYTES_PER_SECOND, DATASET_DIMENSION)],
                ),
                Panel(
                    title="Time left",
                    unit=Unit.SECONDS,
                    lines=[self._line_for_each(HydrationMetric.SECONDS_LEFT, DATASET_DIMENSION, "Minimum")],
                ),
                Panel(
                    title="Data sets that cannot go on",
                    unit=Unit.COUNT,
                    lines=[self._line("data sets", HydrationMetric.FAILED_DATASETS, "Maximum")],
                ),
            ],
        )

    def metric_percent(self, dataset: Dataset, *, period: Duration | None = None) -> cloudwatch.Metric:
        """Return how much of a data set's bytes has been restored, in percent; no data when nothing is restored.

        Args:
            dataset: The data set.
            period: How much time a point covers. Default: - 5 minutes.
        """
        return cloudwatch.Metric(
            namespace=FUNCTION_NAMESPACE,
            metric_name=HydrationMetric.PERCENT,
            dimensions_map={
                NODE_METRICS.cluster_dimension: self._cluster_name,
                DATASET_DIMENSION: f"{self._file_system.mount_point}{dataset.directory}".rstrip("/"),
            },
            statistic="Maximum",
            period=period,
        )

    def grant_read_progress(self, grantee: iam.IGrantable) -> iam.Grant:
        """Let a role read the SSM parameter that says how far the data sets are.

        Args:
            grantee: Who reads it.
        """
        arn = HERE.arn("ssm", f"parameter{progress_parameter(self._cluster_name)}")
        return iam.Grant.add_to_principal(grantee=grantee, actions=["ssm:GetParameter"], resource_arns=[arn])

    def _make_document(self) -> ssm.CfnDocument:
        """Make the document that has a node run `cluster-node`, and the parameter that holds the progress."""
        ssm.CfnParameter(
            self,
            "Progress",
            name=progress_parameter(self._cluster_name),
            description=f"Progress of the hydration of the data sets of the training cluster {self._cluster_name}",
            type="String",
            tier="Standard",
            # The function writes it; CloudFormation only makes it and takes it away.
            value="{}",
        )
        return ssm.CfnDocument(
            self,
            "Document",
            document_type="Command",
            document_format="JSON",
            # To replace it would give it another name under a command that runs.
            update_method="NewVersion",
            content={
                "schemaVersion": "2.2",
                "description": f"Restores files of the training cluster {self._cluster_name} from S3",
                "parameters": {
                    "Request": {
                        "type": "String",
                        "description": "The request to cluster-node, as JSON in base64.",
                        # Nothing that a shell reads as anything but text.
                        "allowedPattern": "^[A-Za-z0-9+/=]+$",
                    }
                },
                "mainSteps": [
                    {
                        "name": "Hydrate",
                        "action": "aws:runShellScript",
                        "precondition": {"StringEquals": ["platformType", "Linux"]},
                        "inputs": {
                            "timeoutSeconds": str(COMMAND_SECONDS),
                            "runCommand": [_COMMAND],
                        },
                    }
                ],
            },
        )

    def _grant(self, role: iam.Role) -> None:
        """Give the permissions to the function's role.

        Sources: https://docs.aws.amazon.com/service-authorization/latest/reference/list_amazonfsx.html and
        https://docs.aws.amazon.com/service-authorization/latest/reference/list_awssystemsmanager.html
        """
        permissions = ClusterPermissions(role, cluster_name=self._cluster_name, tag_key=CLUSTER_TAG, own_tags="")
        permissions.read([*self._reads()])
        self._allow(role, "fsx:CreateDataRepositoryTask", "fsx", f"file-system/{self._file_system.file_system_id}")
        self._allow(role, "fsx:CreateDataRepositoryTask", "fsx", "task/*")
        acknowledge(
            role,
            f"AwsSolutions-IAM5[Resource::arn:<AWS::Partition>:fsx:{_AS_NAG_SAYS}:task/*]",
            "A task gets its id when it is made; the file system that it is for is named.",
        )
        if self.document is not None:
            # https://docs.aws.amazon.com/systems-manager/latest/userguide/run-command-setting-up.html
            permissions.write(["ssm:SendCommand"], INSTANCES)
            self._allow(role, "ssm:SendCommand", "ssm", f"document/{self.document.ref}")
            self._allow(role, "ssm:PutParameter", "ssm", f"parameter{progress_parameter(self._cluster_name)}")

    def _reads(self) -> Iterator[str]:
        if self.document is not None:
            yield "ec2:DescribeInstances"
        yield from ("fsx:DescribeDataRepositoryAssociations", "fsx:DescribeDataRepositoryTasks")
        if self.document is not None:
            yield from ("ssm:DescribeInstanceInformation", "ssm:GetCommandInvocation")

    def _allow(self, role: iam.Role, action: str, service: str, resource: str) -> None:
        arn = HERE.arn(service, resource)
        role.add_to_policy(iam.PolicyStatement(actions=[action], resources=[arn]))


def _maintained(dataset: Dataset) -> HydratedDataset:
    name, source = dataset.bucket.bucket_name, dataset.data_repository_path
    return HydratedDataset(
        path=dataset.directory,
        # The name of a bucket of another stack would have to be exported, and could then not go.
        source=source.replace(name, "") if is_unknown(name) else source,
        preload=bool(dataset.preload),
        patterns=dataset.patterns,
        max_gib=dataset.preload_max_gib,
        release_after=None if dataset.release_after is None else to_time(dataset.release_after),
    )
