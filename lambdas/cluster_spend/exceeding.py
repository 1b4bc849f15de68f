"""What is done where the dollars of a month reach the budget: warn, stop, limit, and report it."""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import TYPE_CHECKING

from cluster_common.errors import AWS_ERRORS
from cluster_common.failures import Failures
from cluster_common.owners.auto_scaling_groups import AutoScalingGroups
from cluster_common.owners.groups import OwnedGroup
from cluster_common.owners.spot_fleets import SpotFleets
from cluster_common.power_function import Answer, PowerFunction
from cluster_contract.aliases import Alias
from cluster_contract.spend import SpendFunctionSettings
from cluster_contract.state import PowerState
from cluster_spend.acts import Acts, Step, next_step, reached
from cluster_spend.groups import NodeGroup, node_groups
from cluster_spend.messages import called_off_message, done_message, reason, warning_message
from cluster_spend.nodes import Node
from cluster_spend.reports import Spend

if TYPE_CHECKING:
    from mypy_boto3_autoscaling.client import AutoScalingClient
    from mypy_boto3_ec2.client import EC2Client
    from mypy_boto3_lambda.client import LambdaClient
    from mypy_boto3_sns.client import SNSClient

_BY = "cluster_spend"


@dataclass(frozen=True, kw_only=True)
class ActingClients:
    """What a budget that acts talks to. Each client is made when it is needed.

    Attributes:
        ec2: Makes the client of EC2.
        auto_scaling: Makes the client of EC2 Auto Scaling.
        lambda_: Makes the client of Lambda.
        sns: Makes the client of SNS.
        pause: Waits for some seconds.
    """

    ec2: "Callable[[], EC2Client]"
    auto_scaling: "Callable[[], AutoScalingClient]"
    lambda_: "Callable[[], LambdaClient]"
    sns: "Callable[[], SNSClient]"
    pause: Callable[[float], None]


class Exceeding:
    """Do what the budget says where it is exceeded.

    What was done is recorded before it is reported, so that a start by an operator in between is never undone; a
    warning is sent before it is recorded, so that nothing is stopped without one.
    """

    def __init__(
        self,
        settings: SpendFunctionSettings,
        clients: ActingClients,
        failures: Failures,
        *,
        record: Callable[[Acts], None],
    ) -> None:
        """Do nothing yet.

        Args:
            settings: The function's settings.
            clients: What it talks to.
            failures: Where it collects what fails.
            record: Writes what was done into the state table.
        """
        self._settings = settings
        self._clients = clients
        self._failures = failures
        self._record = record
        self._power = PowerFunction(clients.lambda_, settings.power_function, Alias.BUDGET, clients.pause)

    def act(self, spend: Spend, nodes: Sequence[Node], reserved: Collection[str]) -> Acts:
        """Act where the dollars demand it, and return what is recorded then.

        Args:
            spend: What the cluster costs.
            nodes: Its instances.
            reserved: The ids of reservations that are billed whole.
        """
        acts = spend.month.acts
        step = next_step(self._settings, acts, spend.month.usd, spend.now)
        if step is Step.CALL_OFF:
            if not self._publish(called_off_message(self._settings, spend)):
                return acts
            return self._keep(Acts(done=acts.done, untold=acts.untold))
        groups: Mapping[str, NodeGroup] | None = {}
        if step is not Step.NOTHING:
            groups = self._read(spend, nodes, reserved)
        if groups is None:
            return acts
        match step:
            case Step.WARN:
                acts = self._warn(spend, acts, groups)
            case Step.STOP:
                acts = self._stop(spend, acts, groups)
            case Step.LIMIT:
                acts = self._limit(spend, acts, groups)
            case _:
                pass
        if acts.untold:
            kept = [group for group in groups.values() if group.name in acts.pending and group.kept]
            if self._publish(done_message(self._settings, spend, acts.untold, kept)):
                acts = self._keep(replace(acts, untold=()))
        return acts

    def _warn(self, spend: Spend, acts: Acts, groups: Mapping[str, NodeGroup]) -> Acts:
        due = tuple(group.name for group in groups.values() if not group.is_stopped and not group.reserved)
        stop_at, amount = spend.now + self._settings.warning, reached(self._settings, spend.month.usd)
        text = warning_message(self._settings, spend, list(groups.values()), due=due, stop_at=stop_at)
        if not self._publish(text):
            return acts
        if not due:
            return self._keep(replace(acts, done=amount))
        return self._keep(replace(acts, usd=amount, stop_at=stop_at, pending=due))

    def _stop(self, spend: Spend, acts: Acts, groups: Mapping[str, NodeGroup]) -> Acts:
        waiting = [groups[name] for name in acts.pending if name in groups]
        # An earlier run may have ended before it recorded its stop.
        stopped = [group.name for group in waiting if group.is_stopped and group.by == _BY]
        open_ = [one for one in waiting if not one.is_stopped and not one.was_started_after(acts.stop_at)]
        due = [group.name for group in open_ if not group.kept]
        if due:
            stopped += self._order("stop", due, spend, {PowerState.STOPPED})
        pending = tuple(group.name for group in open_ if group.name not in stopped)
        acts = replace(acts, pending=pending, untold=(*acts.untold, *stopped))
        if pending:
            return self._keep(acts)
        # What was reached meanwhile is acted on by the same stop.
        return self._keep(Acts(done=reached(self._settings, spend.month.usd), untold=acts.untold))

    def _limit(self, spend: Spend, acts: Acts, groups: Mapping[str, NodeGroup]) -> Acts:
        limited = [one.name for one in groups.values() if one.state == PowerState.LIMITED and one.by == _BY]
        running = [one for one in groups.values() if one.state in (None, PowerState.RUNNING)]
        due = [one.name for one in running if not one.reserved]
        if due:
            done = self._order("limit", due, spend, {PowerState.LIMITED, PowerState.STOPPED})
            limited += done
            if set(due) - set(done):
                return acts
        return self._keep(Acts(done=reached(self._settings, spend.month.usd), untold=tuple(limited)))

    def _order(self, action: str, names: Sequence[str], spend: Spend, states: Collection[str]) -> list[str]:
        """Order something of node groups, and return those of which it was done."""
        answer = self._send({"action": action, "node_groups": list(names)}, reason(self._settings, spend))
        told = {name: {one.get("state") for one in answer.groups if one.get("node_group") == name} for name in names}
        return [name for name, found in told.items() if found and found <= set(states)]

    def _send(self, order: Mapping[str, object], why: str) -> Answer:
        answer = self._power.order(order, why, lambda: True)
        if answer.failure:
            what = f"the power function did not {order['action']} as ordered, and is asked again: {answer.failure}"
            self._failures.add_sentence(self._settings.cluster, what)
        return answer

    def _read(self, spend: Spend, nodes: Sequence[Node], reserved: Collection[str]) -> Mapping[str, NodeGroup] | None:
        """Read the node groups. None: not all of them could be read, and nothing is done."""
        try:
            owners = self._read_owners(spend.now)
        except AWS_ERRORS as error:
            self._failures.add(
                self._settings.cluster, "what owns its nodes could not be read: nothing is done", error
            )
            return None
        answer = self._send({"action": "status"}, "")
        if answer.failure:
            return None
        known = {one.get("node_group") for one in answer.groups if one.get("state")}
        unknown = [name for name in self._settings.groups if name not in known]
        if answer.failures and unknown:
            # An operator may have started them.
            what = f"the power function could not read whether {', '.join(unknown)} is to run: nothing is done"
            self._failures.add_sentence(self._settings.cluster, f"{what} ({'; '.join(answer.failures)})")
            return None
        return node_groups(self._settings, spend, nodes, reserved=reserved, owners=owners, told=answer.groups)

    def _read_owners(self, now: datetime) -> list[OwnedGroup]:
        cluster, fleets = self._settings.cluster, self._settings.fleets
        found: list[OwnedGroup] = []
        names = [name for name in self._settings.groups if name not in fleets]
        if names:
            client = self._clients.auto_scaling
            found += AutoScalingGroups(client(), client, self._clients.ec2, cluster, names).read().groups
        if fleets:
            reading = SpotFleets(self._clients.ec2(), cluster, fleets, {}, now).read()
            for error in reading.unread.values():
                raise error
            found += reading.groups
        return found

    def _keep(self, acts: Acts) -> Acts:
        self._record(acts)
        return acts

    def _publish(self, message: tuple[str, str]) -> bool:
        """Publish a message, and say whether the topic took it."""
        if not self._settings.topic_arn:
            return True
        subject, text = message
        try:
            self._clients.sns().publish(TopicArn=self._settings.topic_arn, Subject=subject, Message=text)
        except AWS_ERRORS as error:
            self._failures.add(self._settings.cluster, "the notification could not be published", error)
            return False
        return True
