"""The desired capacity of an Auto Scaling group that EC2 cannot give all of its nodes.

CloudFormation waits for up to an hour until a group that an update touches has its desired capacity, and rolls back
where it is not reached. So the desired capacity is lowered to the nodes that there are once launches have failed for
the grace, and raised to the group's size again every `RETRY_EVERY`; the first launch that fails then lowers it.

A node that enters Standby lowers it too, and keeps its place: it is raised when the node goes for good.
Sources: https://repost.aws/knowledge-center/auto-scaling-group-not-stabilize-error and
https://docs.aws.amazon.com/autoscaling/ec2/userguide/as-suspend-resume-processes.html
"""

from dataclasses import replace
from datetime import datetime, timedelta
from itertools import takewhile

from cluster_common.owners.kinds import RETRY_EVERY
from cluster_common.power_records import Desired
from cluster_power.context import Context
from cluster_power.groups import Group
from cluster_power.problems import Finding
from cluster_power.verdicts import Decision, Verdict
from cluster_power.windows import Phase

_SHOWS_WITHIN = timedelta(minutes=5)
"""How long after the function has changed a desired capacity that explains what is seen."""

_DESCRIBED_WITHIN = timedelta(minutes=1)
"""How long after the function has set a desired capacity a description may show an older one."""


def settle(group: Group, now: datetime) -> Group:
    """Return a group with what explains the desired capacity that is seen, and no other: any other is an operator's.

    Right after the function has set a desired capacity a description may show an older one, and explains nothing.

    Args:
        group: The group as it was read.
        now: The time.
    """
    record = group.record
    if _may_be_old(group, now):
        return replace(group, shows_old_size=True)
    return replace(group, record=replace(record, desired=_explain_desired(group, now)))


def _may_be_old(group: Group, now: datetime) -> bool:
    record = group.record
    sizes, at = (record.desired.sizes, record.desired.at) if record.desired else ((record.size,), record.since)
    if record.size is None or at is None or group.desired in sizes or now - at >= _DESCRIBED_WITHIN:
        return False
    return record.terminated is None or record.terminated.at < at


def _explain_desired(group: Group, now: datetime) -> Desired | None:
    record, desired = group.record, group.desired
    if record.size is None:
        return record.desired
    if desired == record.size:
        return record.desired and replace(record.desired, sizes=(desired,), goal=None, standby=())
    given = record.desired or Desired(sizes=(record.size,), at=record.since or now)
    if len(given.sizes) == 1:
        by_standby = _explain_by_standby(group, given, now)
        if by_standby is not None or given.sizes == (desired,):
            return by_standby or record.desired
    if desired in given.sizes:
        return replace(given, sizes=(desired,)) if now - given.at <= _SHOWS_WITHIN else None
    terminated, fewer = record.terminated, given.sizes[0] - desired
    if fewer > 0 and terminated and terminated.at >= given.at and now - terminated.at <= _SHOWS_WITHIN:
        goal = record.size if given.goal is None else given.goal
        return replace(given, sizes=(desired,), at=now, goal=goal - fewer)
    return None


def _explain_by_standby(group: Group, given: Desired, now: datetime) -> Desired | None:
    """Return what explains a desired capacity by nodes that entered Standby, or came back from there. None: none did.

    A node that is gone from Standby has left its place, which is given back, unless it came back before it went.
    """
    before, current, more = set(given.standby), group.standby_ids, group.desired - given.sizes[0]
    entered, gone = len(current - before), before - current
    if not -entered <= more <= len(gone) or not (more or (entered and gone)):
        return None
    went_later = max(0, more + entered - len(gone & group.live_ids))
    standby = current | set(sorted(gone - group.live_ids)[went_later:])
    return replace(given, sizes=(group.desired,), at=now, standby=tuple(sorted(standby)))


def decide_desired(decision: Decision, missing: Finding, context: Context) -> Decision:
    """Add what desired capacity a group of the right size gets while nodes are missing.

    Args:
        decision: What was decided about the group.
        missing: What was found of its missing nodes.
        context: What decisions rest on.
    """
    group, window = decision.group, decision.window
    if group is None or not group.owner.holds_deployments or not decision.wanted:
        return decision
    given, now = group.record.desired, context.now
    whole = group.capacity_for(group.goal)
    if group.desired < whole and given is not None and (now - given.at >= RETRY_EVERY or group.gone_from_standby):
        launches = group.launching_suspended is None or group.suspended_by_auto_scaling
        allows = window is None or window.phase is Phase.OPEN or window.is_elsewhere
        if launches and group.goal <= group.maximum and allows:
            return replace(decision, desired=whole)
    least = max(group.counted, group.minimum)
    # Where another than the newest node ends first, one that comes meanwhile could cost one that works.
    if (
        group.ends_newest
        and least < group.desired
        and missing.problem
        and _is_stuck(group, context.settings.launch_grace, now)
    ):
        return replace(decision, desired=least)
    return decision


def decide_resume(decision: Decision) -> Decision:
    """Add whether launches are to be resumed: Auto Scaling suspends them after a day of failures, and never resumes.

    What a user has suspended stays so, and in a group that is left alone everything.
    """
    group, window = decision.group, decision.window
    if group is None or not group.suspended_by_auto_scaling or not decision.wanted:
        return decision
    block_forbids = window is not None and (window.is_elsewhere or window.phase is Phase.UNSEEN)
    if decision.verdict is Verdict.BLOCKED or block_forbids:
        return decision
    raises = decision.desired is not None and decision.desired > group.desired
    short = (group.goal == decision.wanted or group.is_smaller_by_order) and group.counted < group.desired
    return replace(decision, resumes=decision.verdict is Verdict.SIZE or raises or short)


def _is_stuck(group: Group, grace: timedelta, now: datetime) -> bool:
    """Say whether a group has not got on for the grace: its launches fail one after the other, or there are none."""
    record, read = group.record, group.activities
    if read is None or record.since is None:
        return False
    launches = [one for one in read if one.launch and one.started >= record.since]
    if not all(one.finished for one in launches):
        return False  # A node may be about to come.
    asked = max(record.since, record.desired.at) if record.desired else record.since
    failures = list(takewhile(lambda one: one.failed, launches))
    if not failures or failures[0].started < asked:
        return now - max([asked, *(one.started for one in launches)]) >= grace
    # More launches may have failed than are read.
    return now - (asked if len(failures) == len(read) else failures[-1].started) >= grace
