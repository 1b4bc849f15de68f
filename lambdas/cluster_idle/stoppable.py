"""Whether an idle node can be stopped, and whether that would save anything."""

from collections.abc import Sequence

from cluster_common.times import time_text
from cluster_idle.context import STANDBY, IdleContext, OwnerState
from cluster_idle.instances import Instance, Owner
from cluster_idle.stopping import DENIED
from cluster_idle.verdicts import IdleVerdict


class Obstacles:
    """Why idle nodes that are stopped together are not stopped.

    Sources: https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/Stop_Start.html,
    https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/stop-start-spot.html and
    https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/capacity-reservations-pricing-billing.html
    """

    def __init__(self, together: Sequence[Instance], context: IdleContext) -> None:
        """Look at the nodes as a whole: the power function stops all that groups and fleets own of them at once.

        Args:
            together: Nodes that are stopped together; at least one.
            context: What the decision rests on.
        """
        self._context = context
        self._is_alone = context.unit(together[0]) == together[0].id
        members = [one for one in together if one.owner.traits and not self._is_in_standby(one)]
        # A command to stop an owner whose size is zero already changes nothing.
        owned = [one for one in members if not self._is_at_zero(one)]
        found = [self._of_owner(one, context.owners.get(one.owner)) for one in _one_of_each_owner(owned)]
        unseen = None if self._is_alone else _find_unseen(members, together[0].node_group, context)
        self._unseen = (IdleVerdict.UNKNOWN, f"is idle, but {unseen}") if unseen else None
        self._of_owners = next((one for one in found if one), None) or self._of_all(owned)

    def find(self, instance: Instance) -> tuple[IdleVerdict, str] | None:
        """Say why one of the nodes, an idle one, is not stopped. None: it can be, and that saves money."""
        if instance.owner.is_instance:
            return self._unseen or _obstacle_of_instance(instance, self._context)
        if self._is_in_standby(instance):
            return IdleVerdict.UNSTOPPABLE, f"is idle, and {STANDBY}"
        if self._is_at_zero(instance):
            return IdleVerdict.UNSTOPPABLE, f"is idle, and {self._why_it_runs(instance)}"
        if self._of_owners and self._of_owners[0] is IdleVerdict.RESERVED:
            return _saves_nothing(instance)
        return self._of_owners or self._unseen

    def _is_in_standby(self, instance: Instance) -> bool:
        owner = self._context.owners.get(instance.owner)
        return owner is not None and owner.why_held(instance.id) == STANDBY

    def _is_at_zero(self, instance: Instance) -> bool:
        owner = self._context.owners.get(instance.owner)
        return owner is not None and not owner.desired

    def _of_all(self, owned: Sequence[Instance]) -> tuple[IdleVerdict, str] | None:
        """Say what keeps all that is owned: that nothing would be saved."""
        if not owned or self._unseen:
            return self._unseen
        own = self._context.settings.groups.get(owned[0].node_group)
        # Its reservation is lowered when the whole group is stopped, not when one node of it goes.
        releases = own is not None and own.release and not self._is_alone
        return _saves_nothing(owned[0]) if not releases and all(one.reserved for one in owned) else None

    def _of_owner(self, instance: Instance, owner: OwnerState | None) -> tuple[IdleVerdict, str] | None:
        words = instance.owner.description
        if owner is None:
            return IdleVerdict.UNKNOWN, f"is idle, but {_missing(instance.owner, instance.node_group, self._context)}"
        why: str | None = None
        if not self._context.settings.power_function:
            why = f"there is no power function to scale {words}"
        elif owner.deleting:
            why = f"{words} is cancelled or being deleted: terminate its instances"
        elif owner.scheduler_sized:
            # A job that waits could not start while the size is zero.
            why = f"{owner.owner.service} alone takes idle nodes out of {words}: {owner.owner.idle_remedy}"
        elif owner.terminating_suspended is not None:
            why = f"{words} has its process Terminate suspended: resume it"
        else:
            held = self._held(instance, owner)
            why = f"{words} does not terminate {min(held)}: {owner.why_held(min(held))}" if held else None
        return (IdleVerdict.UNSTOPPABLE, f"is idle, but {why}") if why else None

    def _why_it_runs(self, instance: Instance) -> str:
        """Say why a node runs though its owner has the size zero: the end of a sentence."""
        owner, words = self._context.owners[instance.owner], instance.owner.description
        if owner.terminating_suspended is not None:
            return f"{words} has the size 0 and its process Terminate suspended: resume it"
        held, history = owner.why_held(instance.id), owner.owner.history
        return (
            f"{words} has the size 0 and does not terminate it: {held}"
            if held
            else f"{words} has the size 0 and has not terminated it yet: see its {history}"
        )

    def _held(self, instance: Instance, owner: OwnerState) -> frozenset[str]:
        """Return the nodes that would stay, or fail to go: of a whole group those that are protected."""
        if self._is_alone:
            return frozenset({instance.id} if owner.why_held(instance.id) else ())
        return owner.protected_ids


def _one_of_each_owner(owned: Sequence[Instance]) -> list[Instance]:
    found: dict[Owner, Instance] = {}
    for instance in owned:
        found.setdefault(instance.owner, instance)
    return [instance for _, instance in sorted(found.items())]


def _find_unseen(members: Sequence[Instance], node_group: str, context: IdleContext) -> str | None:
    """Say what of a node group could not be read; it has two owners while a deployment replaces one."""
    if node_group in context.unread:
        return f"the owners of the nodes of {node_group} could not be read"
    ids, owners = {one.id for one in members}, {one.owner for one in members}
    owners |= {owner for owner, state in context.owners.items() if state.node_group == node_group}
    for owner in sorted(owners):
        state = context.owners.get(owner)
        if state is None:
            return _missing(owner, node_group, context)
        unseen = sorted(state.live_ids - ids)
        if unseen:
            return f"{owner.description} has nodes that DescribeInstances did not return, such as {unseen[0]}"
    return None


def _obstacle_of_instance(instance: Instance, context: IdleContext) -> tuple[IdleVerdict, str] | None:
    if instance.reserved:
        return _saves_nothing(instance)
    why: str | None = None
    sent = context.warnings.get(context.unit(instance))
    refusal = sent.refusal(instance.id, context.now) if sent else None
    if not instance.ebs_root:
        why = "its root volume is instance store: EC2 cannot stop it, terminate it"
    elif refusal is not None and refusal.code not in DENIED:
        why = f"EC2 refused to stop it ({refusal.code}): the function tries again at {time_text(refusal.ends)}"
    elif instance.spot_request is not None:
        why = context.spot_requests.get(instance.spot_request)
        if why is None:
            return IdleVerdict.UNKNOWN, "is idle, but its Spot Instance request could not be read"
    return (IdleVerdict.UNSTOPPABLE, f"is idle, but {why}") if why else None


def _missing(owner: Owner, node_group: str, context: IdleContext) -> str:
    """Say why nothing is known of an owner of nodes: the end of a sentence."""
    if node_group in context.unread:
        return f"{owner.description}, which owns nodes of {node_group}, could not be read"
    tag = f"{context.settings.tag} = {context.settings.cluster}"
    what = f"{owner.description}, which owns nodes of {node_group},"
    return f"{what} does not exist, is of another stack or does not have the tag {tag}"


def _saves_nothing(instance: Instance) -> tuple[IdleVerdict, str]:
    return IdleVerdict.RESERVED, f"is idle in {instance.reserved}, which is billed whether it runs or not"
