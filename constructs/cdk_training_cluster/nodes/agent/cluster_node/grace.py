"""How the node lets Auto Scaling go on with its termination as soon as no job needs it any more."""

from __future__ import annotations

import sys

from cluster_contract.health import DRAIN_HOOK

from .programs import ask

_SECONDS = 30
# Where a node waits that returns to its warm pool: https://docs.aws.amazon.com/autoscaling/ec2/userguide/warm-pool-instance-lifecycle.html
_TO_WARM_POOL = "Warmed:Pending:Wait"


def let_go(region: str, instance_id: str) -> bool:
    """Complete the node's terminating lifecycle action, and say whether Auto Scaling waits for nothing any more.

    Args:
        region: The node's region.
        instance_id: The node's instance.

    Source: https://docs.aws.amazon.com/autoscaling/ec2/userguide/completing-lifecycle-hooks.html
    """
    aws = ("aws", "--region", region, "autoscaling")
    answer = ask(
        (
            *(*aws, "describe-auto-scaling-instances", "--instance-ids", instance_id, "--output", "text"),
            *("--query", "AutoScalingInstances[].[AutoScalingGroupName,LifecycleState]"),
        ),
        _SECONDS,
    )
    group, _, state = answer.text.strip().partition("\t")
    if not answer.succeeded:
        return _say(f"Auto Scaling does not say whether it waits for {instance_id}: {answer.trouble}")
    if not group or not state.endswith(("Terminating:Wait", _TO_WARM_POOL)):
        # It has not got round to its hook yet; or it is through with it.
        return state.endswith("Proceed") or state.startswith("Warmed:") or not group
    complete = (
        *(*aws, "complete-lifecycle-action", "--lifecycle-hook-name", DRAIN_HOOK, "--instance-id", instance_id),
        *("--auto-scaling-group-name", group, "--lifecycle-action-result", "CONTINUE"),
    )
    answer = ask(complete, _SECONDS)
    if state == _TO_WARM_POOL and "ValidationError" in answer.trouble:
        # A new node waits there too, at its launching hook alone.
        return True
    return answer.succeeded or _say(
        f"Auto Scaling did not take the answer that {instance_id} may go: {answer.trouble}"
    )


def _say(sentence: str) -> bool:
    sys.stderr.write(f"cluster-node watch: {sentence}\n")
    return False
