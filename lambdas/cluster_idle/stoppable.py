"""Whether an idle node can be stopped, and whether that would save anything."""

from collections.abc import Sequence

from cluster_idle.instances import Instance, OwnerKind
from cluster_idle.situation import OwnerState, Situation
from cluster_idle.verdicts import Verdict


class Obstacles:
    """Why idle nodes that are stopped together are not stopped.

    Sources: https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/Stop_Start.html,
    https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/stop-start-spot.html and
    https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/capacity-reservations-pricing-billing.html
    """

    def __init__(self, together: Sequence[Instance], situation: Situation) -> None:
        """Look at the nodes as a whole.

        Args:
            together: Nodes that are stopped together; at least one.
            situation: What the decision rests on.
        """
        self._situation = situation
        self._is_alone = situation.unit(together[0]) == together[0].id
        self._unreserved = {one.owner for one in together if not one.reserved}
        self._unseen = None if self._is_alone else _find_unseen(together, situation)

    def find(self, instance: Instance) -> tuple[Verdict, str] | None:
        """Say why one of the nodes, an idle one, is not stopped. None: it can be, and that saves money."""
        if instance.owner.kind is OwnerKind.INSTANCE:
            return _obstacle_of_instance(instance, self._situation)
        owner, words = self._situation.owners.get(instance.owner), instance.owner.words
        if owner is None:
            return Verdict.UNKNOWN, f"is idle, but {words}, which owns it, could not be read"
        return self._obstacle_of_owner(instance, owner) or self._obstacle_of_reservation(instance)

    def _obstacle_of_owner(self, instance: Instance, owner: OwnerState) -> tuple[Verdict, str] | None:
        words = instance.owner.words
        if self._situation.settings.power_function is None:
            return Verdict.UNSTOPPABLE, f"is idle, and there is no power function to scale {words}"
        if owner.stopped:
            why = "the power function says why it still runs"
            return Verdict.UNSTOPPABLE, f"is idle, and {words} is stopped already: {why}"
        protected = sorted(owner.protected & ({instance.id} if self._is_alone else owner.protected))
        if protected:
            return Verdict.UNSTOPPABLE, f"is idle, but {words} protects {protected[0]} from scale-in: take that away"
        return (Verdict.UNKNOWN, f"is idle, but {self._unseen}") if self._unseen else None

    def _obstacle_of_reservation(self, instance: Instance) -> tuple[Verdict, str] | None:
        own = self._situation.settings.groups.get(instance.node_group)
        # Its reservation is lowered when the whole group is stopped, not when one node of it goes.
        releases = own is not None and own.release and not self._is_alone
        if instance.reserved and not releases and instance.owner not in self._unreserved:
            return _saves_nothing(instance)
        return None


def _find_unseen(together: Sequence[Instance], situation: Situation) -> str | None:
    """Say what nobody sees of the owners of a node group, of which there are two while a deploy replaces one.

    The power function stops all of them at once.
    """
    ids, node_group = {one.id for one in together}, together[0].node_group
    owners = {one.owner for one in together if one.owner.kind not in (OwnerKind.INSTANCE, OwnerKind.OTHER)}
    owners |= {owner for owner, state in situation.owners.items() if state.node_group == node_group}
    for owner in sorted(owners):
        state = situation.owners.get(owner)
        if state is None:
            return f"{owner.words}, which owns nodes of {node_group} too, could not be read"
        unseen = sorted((state.members or frozenset()) - ids)
        if unseen:
            return f"{owner.words} has nodes that are not seen, such as {unseen[0]}"
    return None


def _obstacle_of_instance(instance: Instance, situation: Situation) -> tuple[Verdict, str] | None:
    if instance.reserved:
        return _saves_nothing(instance)
    if not instance.ebs_root:
        return Verdict.UNSTOPPABLE, "is idle, and its root volume is instance store: EC2 cannot stop it, terminate it"
    if instance.spot_request is None:
        return None
    why = situation.spot_requests.get(instance.spot_request)
    if why is None:
        return Verdict.UNKNOWN, "is idle, but its Spot Instance request could not be read"
    return (Verdict.UNSTOPPABLE, f"is idle, and {why}") if why else None


def _saves_nothing(instance: Instance) -> tuple[Verdict, str]:
    return Verdict.RESERVED, f"is idle in {instance.reserved}, which is billed whether it runs or not"
