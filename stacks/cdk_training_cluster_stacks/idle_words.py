"""Says in a few plain words what becomes of idle nodes."""

from collections.abc import Iterator

from aws_cdk import Duration

from cdk_training_cluster import IdlePolicy, TrainingCluster


def idle_lines(cluster: TrainingCluster) -> Iterator[str]:
    """Say what becomes of idle nodes: a line for the cluster, and one for each group of which it is not true.

    Args:
        cluster: The cluster.
    """
    if cluster.idle_stop is None:
        yield "Idle nodes: never stopped"
        return
    usual = what_becomes_of(cluster.idle_stop.policy)
    yield f"Idle nodes: {usual}"
    for name, policy in cluster.idle_stop.policies.items():
        words = what_becomes_of(policy)
        if words != usual:
            yield f"  {name}: {words}"


def what_becomes_of(policy: IdlePolicy) -> str:
    """Say what becomes of nodes that are idle.

    Args:
        policy: Their policy, with nothing left out.
    """
    if policy.is_off:
        return "never stopped"
    warned = f"warned after {_minutes(policy.window)}"
    stopped = "not stopped (dry run)" if policy.dry_run else f"stopped {_minutes(policy.warning)} later"
    each = ", each by itself" if policy.takes_single_nodes else ""
    signals = " and ".join(signal.name for signal in policy.signals or ())
    accelerators = "; accelerators alone say it" if policy.host_activity is False and not signals else ""
    return f"{warned}, {stopped}{each}{f'; {signals} must agree' if signals else accelerators}"


def _minutes(duration: Duration | None) -> str:
    minutes = 0 if duration is None else round(duration.to_minutes())
    return f"{minutes} minute{'' if minutes == 1 else 's'}"
