"""What is done where the dollars of a month reach the budget: warn, stop, limit, and report it."""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from decimal import Decimal

from cluster_common.clients import Clients
from cluster_common.errors import AWS_ERRORS, error_code
from cluster_common.failures import Failures
from cluster_common.messages import publish
from cluster_common.owners.groups import OwnedGroup
from cluster_common.owners.making import make_owners
from cluster_common.power_function import Answer, PowerFunction
from cluster_contract.aliases import Alias
from cluster_contract.spend import OnExceed, SpendFunctionSettings
from cluster_contract.state import PowerState, Sender
from cluster_spend.acts import Acts, reached
from cluster_spend.groups import NodeGroup, node_groups
from cluster_spend.messages import cancelled_message, done_message, reason, warning_message
from cluster_spend.nodes import BilledNode
from cluster_spend.reports import Spend

# How many runs may come late before a warning counts as old.
_TICKS = 2


class Exceeding:
    """Act on node groups where the month's dollars reach the budget.

    A warning is sent before it is recorded, so that nothing is stopped without one. When its time is over, its node
    groups are stopped; one that could not be stopped for as long as a warning lasts is warned of again.

    Attributes:
        acts: What is recorded of the budget's acts.
    """

    def __init__(
        self,
        settings: SpendFunctionSettings,
        clients: Clients,
        failures: Failures,
        acts: Acts,
        *,
        record: Callable[[Acts], None],
    ) -> None:
        """Do nothing yet.

        Args:
            settings: The function's settings.
            clients: What it talks to.
            failures: Where it collects what fails.
            acts: What the budget has done.
            record: Writes what was done into the state table.
        """
        self._settings = settings
        self._clients = clients
        self._failures = failures
        self._record = record
        self._power = PowerFunction(clients.lambda_, settings.power_function, Alias.BUDGET, clients.pause)
        self.acts = acts

    def act(self, spend: Spend, nodes: Sequence[BilledNode], reserved: Collection[str]) -> None:
        """Act where the month's dollars have reached an amount of the budget, and record it.

        Args:
            spend: What the cluster costs.
            nodes: Its instances.
            reserved: The ids of reservations that are billed whole.
        """
        acts, settings = self.acts, self._settings
        amount = reached(settings, spend.month.usd)
        ends = not amount or (acts.month, acts.effect) != (spend.month.name, settings.on_exceed)
        waits = not ends and acts.stop_at is not None and spend.now < acts.stop_at
        if waits or not (amount or acts.groups):
            return
        groups = self._read(spend, nodes, reserved)
        if groups is None or (ends and not self._end(spend, groups)) or not amount:
            return
        acts, budget = self.acts, Decimal(str(settings.monthly_usd))
        if acts.groups:
            # A budget that is still exceeded after a change ends no warning.
            acts = replace(acts, budget=budget, usd=min(acts.usd, amount))
        elif ends or acts.budget != budget:
            acts = Acts(month=spend.month.name, effect=settings.on_exceed, budget=budget)
        if amount > acts.usd and not acts.groups:
            acts = replace(acts, usd=amount, since=spend.now, held=())
        # The next edge of its schedule replaces the operator's command, which holds all the same.
        held = {group.name for group in groups.values() if group.is_held(acts.since)}
        acts = replace(acts, held=tuple(sorted(held.union(acts.held))))
        if settings.on_exceed is OnExceed.STOP:
            self._stop(spend, acts, groups)
        else:
            self._limit(spend, acts, groups)

    def _end(self, spend: Spend, groups: Mapping[str, NodeGroup]) -> bool:
        """Report what was done, and cancel a warning, where the budget or the month is another since."""
        acts = self.acts
        if any(groups[name].is_unknown for name in acts.groups if name in groups):
            return False
        done = _done(acts, groups)
        if done and not self._publish(done_message(self._settings, spend, acts, done)):
            return False
        warned = acts.stop_at is not None and set(acts.groups) - set(done)
        if warned and not self._publish(cancelled_message(self._settings, spend, acts, sorted(warned))):
            return False
        self._keep(replace(acts, stop_at=None, groups=()))
        return True

    def _stop(self, spend: Spend, acts: Acts, groups: Mapping[str, NodeGroup]) -> None:
        due = [one.name for one in _due(acts, groups) if not one.kept]
        if acts.stop_at is None:
            self._warn(spend, acts, groups, due)
            return
        is_old = spend.now > acts.stop_at + self._settings.warning + _TICKS * self._settings.tick
        waiting = [name for name in acts.groups if name in due]
        unknown = [name for name in acts.groups if name in groups and groups[name].is_unknown]
        stopped = self._command("stop", waiting, spend, {PowerState.STOPPED}) if waiting and not is_old else []
        left = [name for name in (*waiting, *unknown) if name not in stopped]
        self._report(spend, acts, groups, done=[*_done(acts, groups), *stopped], left=left)
        if is_old and waiting:
            self._warn(spend, self.acts, groups, due)

    def _warn(self, spend: Spend, acts: Acts, groups: Mapping[str, NodeGroup], due: Sequence[str]) -> None:
        every = list(groups.values())
        if not due and any(group.is_unknown for group in every):
            return
        stop_at = spend.now + self._settings.warning
        # A higher amount is reported once, also where there is nothing to stop.
        reports = acts.since == spend.now and not all(group.is_stopped for group in every)
        if due or reports:
            text = warning_message(self._settings, spend, every, due=due, stop_at=stop_at)
            if not self._publish(text):
                return
        self._keep(replace(acts, stop_at=stop_at if due else None, groups=tuple(due)))

    def _limit(self, spend: Spend, acts: Acts, groups: Mapping[str, NodeGroup]) -> None:
        due = [one.name for one in _due(acts, groups) if one.state != PowerState.LIMITED]
        # Recorded first, so that a run that ends in between is made good with its message.
        acts = replace(acts, groups=tuple(dict.fromkeys([*acts.groups, *due])))
        self._keep(acts)
        limited = self._command("limit", due, spend, {PowerState.LIMITED}) if due else []
        unknown = [name for name in acts.groups if name in groups and groups[name].is_unknown]
        left = [name for name in (*due, *unknown) if name not in limited]
        self._report(spend, acts, groups, done=[*_done(acts, groups), *limited], left=left)

    def _report(
        self, spend: Spend, acts: Acts, groups: Mapping[str, NodeGroup], *, done: Sequence[str], left: Sequence[str]
    ) -> None:
        """Report what was done, and record what is left to do; what could not be reported stays recorded."""
        kept = [groups[name] for name in acts.groups if name in groups and groups[name].kept and name not in done]
        if done and not self._publish(done_message(self._settings, spend, acts, done, kept)):
            return
        self._keep(replace(acts, stop_at=acts.stop_at if left else None, groups=tuple(left)))

    def _command(self, action: str, names: Sequence[str], spend: Spend, states: Collection[str]) -> list[str]:
        """Send a command for node groups, and return those that have one of the states then."""
        answer = self._send({"action": action, "node_groups": list(names)}, reason(self._settings, spend))
        has = {name: {one.get("state") for one in answer.groups if one.get("node_group") == name} for name in names}
        return [name for name, found in has.items() if found and found <= set(states)]

    def _send(self, command: Mapping[str, object], why: str) -> Answer:
        answer = self._power.send(command, why, lambda: True)
        if answer.failure:
            what = (
                f"the command {command['action']} to the power function failed, and the next run repeats it: "
                f"{answer.failure}"
            )
            self._failures.add_sentence(self._settings.cluster, what)
        return answer

    def _read(
        self, spend: Spend, nodes: Sequence[BilledNode], reserved: Collection[str]
    ) -> Mapping[str, NodeGroup] | None:
        """Read the node groups. None: not all of them could be read, and the budget does not act in this run."""
        try:
            owners = self._read_owners(spend.now)
        except AWS_ERRORS as error:
            what = "what owns its nodes could not be read, so the budget acts on no node group in this run"
            self._failures.add(self._settings.cluster, what, error)
            return None
        answer = self._send({"action": "status"}, "")
        if answer.failure:
            return None
        groups = node_groups(self._settings, spend, nodes, reserved=reserved, owners=owners, answer=answer)
        unknown = [group.name for group in groups.values() if group.is_unknown]
        if unknown:
            what = (
                f"the power function could not read the desired state of {', '.join(unknown)}, so the budget does "
                "not act on it in this run"
            )
            self._failures.add_sentence(self._settings.cluster, f"{what} ({'; '.join(answer.failures)})")
        return groups

    def _read_owners(self, now: datetime) -> list[OwnedGroup]:
        found: list[OwnedGroup] = []
        own = self._settings
        for owner in make_owners(own.groups, self._clients, own.cluster, now, stack_id=own.stack_id):
            reading = owner.read()
            for error in reading.unread.values():
                raise error
            found += reading.groups
        return found

    def _keep(self, acts: Acts) -> None:
        if acts != self.acts:
            self._record(acts)
            self.acts = acts

    def _publish(self, message: tuple[str, str]) -> bool:
        """Publish a message, and say whether the topic took it, or there is no topic."""
        if not self._settings.topic_arn:
            return True
        subject, text = message
        try:
            publish(self._clients.sns(), self._settings.topic_arn, subject, text)
        except AWS_ERRORS as error:
            what = (
                f"the notification could not be published to {self._settings.topic_arn}, and the next run repeats it"
            )
            self._failures.add(self._settings.cluster, what, error)
            # Without a topic nothing can be published, and the budget holds all the same.
            # https://docs.aws.amazon.com/sns/latest/api/API_Publish.html
            return error_code(error) == "NotFound"
        return True


def _due(acts: Acts, groups: Mapping[str, NodeGroup]) -> list[NodeGroup]:
    return [group for group in groups.values() if group.is_due and group.name not in acts.held]


def _done(acts: Acts, groups: Mapping[str, NodeGroup]) -> list[str]:
    """Return the node groups that have the state that this function commanded, also where a run did not record it."""
    state = PowerState.STOPPED if acts.effect is OnExceed.STOP else PowerState.LIMITED
    found = [groups[name] for name in acts.groups if name in groups]
    return [group.name for group in found if group.state == state and group.by == Sender.BUDGET]
