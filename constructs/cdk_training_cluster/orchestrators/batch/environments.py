"""The compute environment of a node group: what launches its nodes as jobs need them."""

from aws_cdk import Duration, Fn
from aws_cdk import aws_batch as batch
from aws_cdk import aws_ec2 as ec2

from cdk_training_cluster.nodes.fleet import Fleet
from cdk_training_cluster.nodes.owners import Launch

_Environment = batch.CfnComputeEnvironment

# Spot and GPU settings are the image's own. A job that is ended gets two minutes to write a checkpoint, and the agent
# takes no job before the node is set up: the file system is mounted, and EFA works. Containers of multi-node jobs are
# in the network mode awsvpc: they have the jobs' role, and do not reach that of the nodes.
# https://docs.aws.amazon.com/AmazonECS/latest/developerguide/ecs-agent-config.html
# https://docs.aws.amazon.com/batch/latest/userguide/mnp-ce.html
_AGENT = """\
#!/bin/bash
mkdir -p /etc/ecs /etc/systemd/system/ecs.service.d
echo ECS_CONTAINER_STOP_TIMEOUT=120s >> /etc/ecs/ecs.config
echo ECS_IMAGE_PULL_BEHAVIOR=prefer-cached >> /etc/ecs/ecs.config
echo ECS_AWSVPC_BLOCK_IMDS=true >> /etc/ecs/ecs.config
cat > /etc/systemd/system/ecs.service.d/10-cdk-training-cluster.conf <<'UNIT'
[Service]
ExecStartPre=/bin/grep -q '"state": "ready"' /var/lib/cdk-training-cluster/bootstrap.json
UNIT
systemctl daemon-reload
"""


def agent_part() -> ec2.MultipartBody:
    """Return the part of user data that configures the ECS agent."""
    return ec2.MultipartBody.from_raw_body(content_type='text/x-shellscript; charset="utf-8"', body=_AGENT)


def make_environment(
    fleet: Fleet, launch: Launch, *, scale_down_delay: Duration | None, update_timeout: Duration
) -> batch.CfnComputeEnvironment:
    """Make the compute environment of a node group, with no nodes; later deployments change it in place.

    Args:
        fleet: The group's construct, and the scope of what is made.
        launch: The launch template.
        scale_down_delay: How long a node waits for another job. None: not at all.
        update_timeout: How long jobs may run on when a deployment replaces the nodes.

    Source: https://docs.aws.amazon.com/batch/latest/userguide/infrastructure-updates.html
    """
    group = fleet.node_group
    delay = None if scale_down_delay is None else int(scale_down_delay.to_minutes())
    return _Environment(
        fleet,
        "ComputeEnvironment",
        type="MANAGED",
        state="ENABLED",
        # Replaced, an environment would leave running jobs behind. In place it can be changed with Batch's
        # service-linked role, which it has where no role is named, and a strategy other than BEST_FIT.
        replace_compute_environment=False,
        update_policy=_Environment.UpdatePolicyProperty(
            terminate_jobs_on_update=False, job_execution_timeout_minutes=int(update_timeout.to_minutes())
        ),
        compute_resources=_Environment.ComputeResourcesProperty(
            type="EC2",
            allocation_strategy="BEST_FIT_PROGRESSIVE",
            minv_cpus=0,
            maxv_cpus=group.count * fleet.instance_type.vcpus,
            instance_types=[info.name for info in launch.instance_types],
            subnets=[fleet.network.node_subnet.subnet_id],
            instance_role=fleet.instance_profile.instance_profile_arn,
            placement_group=fleet.placement_group_name,
            # Security groups stand on the template's network interfaces: EC2 refuses them at the top beside these.
            launch_template=_Environment.LaunchTemplateSpecificationProperty(
                launch_template_id=launch.template.launch_template_id,
                version=launch.template.latest_version_number,
            ),
            ec2_configuration=(
                [_Environment.Ec2ConfigurationObjectProperty(image_type="ECS_AL2023_NVIDIA")]
                if group.machine_image is None
                else None
            ),
            update_to_latest_image_version=False,
            scaling_policy=(
                None
                if delay is None
                else _Environment.ComputeScalingPolicyProperty(min_scale_down_delay_minutes=delay)
            ),
        ),
    )


def environment_name(environment: batch.CfnComputeEnvironment) -> str:
    """Return the name of a compute environment, which its ARN ends with.

    Args:
        environment: The compute environment.
    """
    return Fn.select(1, Fn.split("/", environment.ref))
