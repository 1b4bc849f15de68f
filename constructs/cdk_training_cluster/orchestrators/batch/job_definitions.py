"""The job definitions of multi-node parallel jobs."""

from collections.abc import Mapping

from aws_cdk import Aws, Stack
from aws_cdk import aws_batch as batch
from aws_cdk import aws_iam as iam
from aws_cdk import aws_logs as logs
from constructs import Construct

from cdk_training_cluster.nodes.bootstrap.environment import DEFAULT_ENVIRONMENT
from cdk_training_cluster.nodes.node_fleet import NodeFleet
from cdk_training_cluster.orchestrators.batch.settings import BatchJob

_Definition = batch.CfnJobDefinition

# What is left to the system and the ECS agent, which a job must not ask for:
# https://docs.aws.amazon.com/batch/latest/userguide/memory-management.html
_MEMORY_SHARE = 0.9
_SHARED_SHARE = 0.5
_VOLUME = "fsx"
_RIGHTS = ["READ", "WRITE", "MKNOD"]


def make_job_definition(
    scope: Construct,
    job: BatchJob,
    *,
    fleet: NodeFleet,
    name: str,
    role: iam.IRole,
    log_group: logs.ILogGroup,
    environment: Mapping[str, str],
) -> batch.CfnJobDefinition:
    """Make the job definition of a multi-node parallel job.

    Args:
        scope: The parent construct.
        job: What it runs.
        fleet: Where it runs.
        name: Its name.
        role: The role of its containers.
        log_group: Where its output goes.
        environment: The environment variables of the cluster.

    Source: https://docs.aws.amazon.com/batch/latest/userguide/create-multi-node-job-def.html
    """
    variables = {**DEFAULT_ENVIRONMENT, **environment, **fleet.node_group.environment, **job.environment}
    output = _Definition.LogConfigurationProperty(
        log_driver="awslogs",
        options={
            "awslogs-group": log_group.log_group_name,
            "awslogs-region": Stack.of(scope).region,
            "awslogs-stream-prefix": job.name,
        },
    )
    return _Definition(
        scope,
        f"Job{job.name}",
        job_definition_name=name,
        type="multinode",
        propagate_tags=True,
        node_properties=_Definition.NodePropertiesProperty(
            num_nodes=job.nodes or fleet.node_group.count,
            main_node=0,
            # Open at its end: covers all nodes, however many a submission asks for.
            node_range_properties=[
                _Definition.NodeRangePropertyProperty(
                    target_nodes="0:", container=_container(job, fleet, variables, role.role_arn, output)
                )
            ],
        ),
        # Without conditions every failure is tried again. Batch sees the main node alone: of the host of another node
        # that failed it sees the code with which the main node's program gave up, as of any other failure.
        # https://docs.aws.amazon.com/batch/latest/userguide/job_retries.html
        # https://docs.aws.amazon.com/batch/latest/userguide/multi-node-parallel-jobs.html
        retry_strategy=_Definition.RetryStrategyProperty(attempts=job.attempts),
        timeout=(
            None
            if job.timeout is None
            else _Definition.TimeoutProperty(attempt_duration_seconds=int(job.timeout.to_seconds()))
        ),
    )


def _container(
    job: BatchJob,
    fleet: NodeFleet,
    variables: Mapping[str, str],
    role_arn: str,
    output: batch.CfnJobDefinition.LogConfigurationProperty,
) -> batch.CfnJobDefinition.ContainerPropertiesProperty:
    info, mount = fleet.instance_type, fleet.mount
    memory = job.memory_mib or int(info.memory_mib * _MEMORY_SHARE)
    resources = {"VCPU": info.vcpus, "MEMORY": memory}
    if info.has_nvidia_gpus:
        resources["GPU"] = info.nvidia_gpu_count
    paths = [f"/dev/infiniband/uverbs{number}" for number in range(fleet.efa_interfaces)]
    paths += [f"/dev/neuron{number}" for number in range(info.neuron_device_count)]
    mounts = [] if mount is None else [mount.mount_point]
    return _Definition.ContainerPropertiesProperty(
        image=job.image,
        command=list(job.command),
        instance_type=info.name,
        job_role_arn=role_arn,
        log_configuration=output,
        environment=[
            _Definition.EnvironmentProperty(name=key, value=value) for key, value in sorted(variables.items())
        ],
        resource_requirements=[
            _Definition.ResourceRequirementProperty(type=kind, value=str(value)) for kind, value in resources.items()
        ],
        linux_parameters=_Definition.LinuxParametersProperty(
            shared_memory_size=job.shared_memory_mib or int(memory * _SHARED_SHARE),
            init_process_enabled=True,
            devices=[
                _Definition.DeviceProperty(host_path=path, container_path=path, permissions=_RIGHTS) for path in paths
            ],
        ),
        ulimits=[
            _Definition.UlimitProperty(name="memlock", soft_limit=-1, hard_limit=-1),
            _Definition.UlimitProperty(name="nofile", soft_limit=1_048_576, hard_limit=1_048_576),
        ],
        volumes=[
            _Definition.VolumesProperty(name=_VOLUME, host=_Definition.VolumesHostProperty(source_path=path))
            for path in mounts
        ],
        mount_points=[_Definition.MountPointsProperty(container_path=path, source_volume=_VOLUME) for path in mounts],
    )


def submit_command(queue: str, definition: str, name: str, *, shared: bool) -> str:
    """Return the command that submits a job.

    Args:
        queue: The name of the job queue.
        definition: The name of the job definition.
        name: The job's name.
        shared: Whether the queue has shares.
    """
    share = " --share-identifier SHARE" if shared else ""
    return (
        f"aws batch submit-job --region {Aws.REGION} --job-name {name} --job-queue {queue} "
        f"--job-definition {definition}{share}"
    )
