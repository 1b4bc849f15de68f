"""Whether an idle node can be stopped, and whether that would save anything."""

from collections.abc import Sequence

from cluster_idle.instances import Instance, OwnerKind
from cluster_idle.situation import Situation
from cluster_idle.verdicts import Verdict


def find_obstacle(
    instance: Instance, together: Sequence[Instance], situation: Situation
) -> tuple[Verdict, str] | None:
    """Say why an idle node is not stopped. None: it can be, and that saves money.

    Args:
        instance: The node.
        together: The nodes that it is stopped together with, itself among them.
        situation: What the decision rests on.

    Sources: https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/Stop_Start.html,
    https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/stop-start-spot.html and
    https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/capacity-reservations-pricing-billing.html
    """
    if instance.owner.kind is OwnerKind.INSTANCE:
        return _obstacle_of_instance(instance, situation)
    of_owner = _obstacle_of_owner(instance, together, situation)
    if of_owner:
        return of_owner
    own = situation.settings.groups.get(instance.node_group)
    group = [one for one in together if one.owner == instance.owner]
    if instance.reserved and not (own and own.release) and all(one.reserved for one in group):
        return _saves_nothing(instance)
    return None


def _obstacle_of_owner(
    instance: Instance, together: Sequence[Instance], situation: Situation
) -> tuple[Verdict, str] | None:
    owner, words = situation.owners.get(instance.owner), instance.owner.words
    if owner is None:
        return Verdict.UNKNOWN, f"is idle, but {words}, which owns it, could not be read"
    if situation.settings.power_function is None:
        return Verdict.UNSTOPPABLE, f"is idle, and there is no power function to scale {words}"
    if owner.stopped:
        why = "the power function says why it still runs"
        return Verdict.UNSTOPPABLE, f"is idle, and {words} is stopped already: {why}"
    alone = situation.unit(instance) == instance.id
    protected = sorted(owner.protected & ({instance.id} if alone else owner.protected))
    if protected:
        return Verdict.UNSTOPPABLE, f"is idle, but {words} protects {protected[0]} from scale-in: take that away"
    unseen = sorted((owner.members or frozenset()) - {one.id for one in together})
    if unseen and not alone:
        return Verdict.UNKNOWN, f"is idle, but {words} has nodes that are not seen, such as {unseen[0]}"
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
