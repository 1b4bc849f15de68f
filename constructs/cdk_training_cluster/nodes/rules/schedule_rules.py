"""What of a schedule a group's nodes cannot be asked for."""

from collections.abc import Iterator

from cdk_training_cluster.nodes.rules.context import NodeGroupContext
from cdk_training_cluster.validation.rule import Rules
from cluster_contract.idle import IdleScope
from cluster_contract.schedule import ScheduleEnd

SCHEDULE_RULES: Rules[NodeGroupContext] = Rules()


@SCHEDULE_RULES.rule(
    "scheduleBlock", "https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/ec2-capacity-blocks.html", "schedule"
)
def _a_block_is_a_schedule(context: NodeGroupContext) -> Iterator[str]:
    if context.schedule is not None and context.group.capacity.block_id is not None:
        yield (
            f"schedule must be left out for {context.call}, whose nodes run while the block does, and which is paid "
            f"for in advance; where the cluster has a schedule, give the group {context.words.no_schedule}"
        )


@SCHEDULE_RULES.rule(
    "scheduleIdle",
    "https://docs.aws.amazon.com/AmazonCloudWatch/latest/monitoring/CloudWatch-Agent-NVIDIA-GPU.html",
    "schedule",
)
def _only_idle_nodes_that_are_stopped_end_a_run(context: NodeGroupContext) -> Iterator[str]:
    policy, schedule, words = context.policy, context.schedule, context.words
    if schedule is None or policy is None or schedule.end is not ScheduleEnd.IDLE:
        return
    if policy.is_off or policy.dry_run:
        yield (
            f"{words.part('end', 'schedule')} must be {words.value(ScheduleEnd.STOP)} where idle nodes are not "
            f"stopped, got {words.value(ScheduleEnd.IDLE)}: nothing would stop the nodes; let the idle function stop "
            "them, or end with the window"
        )


@SCHEDULE_RULES.rule(
    "scheduleScope",
    "https://docs.aws.amazon.com/autoscaling/ec2/APIReference/API_TerminateInstanceInAutoScalingGroup.html",
    "schedule",
)
def _only_nodes_that_are_stopped_together_start_again(context: NodeGroupContext) -> Iterator[str]:
    policy, schedule, words = context.policy, context.schedule, context.words
    if schedule is None or policy is None or schedule.end is not ScheduleEnd.IDLE:
        return
    if policy.takes_single_nodes and not policy.dry_run:
        yield (
            f"{words.part('end', 'schedule')} must be {words.value(ScheduleEnd.STOP)} with "
            f"{words.part('scope', 'idle_policy')} {words.value(IdleScope.NODE)}, got "
            f"{words.value(ScheduleEnd.IDLE)}: the next window does not start single nodes that the idle function "
            f"has terminated; end with the window, or give the group the scope {words.value(IdleScope.GANG)}"
        )
