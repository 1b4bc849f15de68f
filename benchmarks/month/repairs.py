"""The nodes of one Auto Scaling group under the health function's own decisions, minute by minute."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from random import Random

from cluster_common.owners.groups import OwnedGroup, OwnedNode
from cluster_common.owners.kinds import AUTO_SCALING_GROUP
from cluster_contract.faults import FAULTS, FaultKind
from cluster_contract.health import NodeReport, ReportedCheck, ReportedFault, ReportKind
from cluster_contract.health_settings import HealthPolicySettings
from cluster_health.decisions import decide
from cluster_health.node_records import NodeRecord
from cluster_health.outcomes import Context, Finding, GroupView, Outcome, PlannedSize
from cluster_health.records import GroupRecord

_BEGIN = datetime(2026, 11, 2, tzinfo=UTC)  # a Monday
_TICK = timedelta(minutes=1)
_GROUP = "workers"
_DRAINED_AFTER = timedelta(seconds=30)
_ACTS = frozenset({Outcome.CORDON, Outcome.REBOOT, Outcome.REPLACE, Outcome.RETURN})
_UNHEALTHY_AFTER = timedelta(minutes=2)  # two failed status checks


@dataclass(frozen=True, kw_only=True)
class RepairTimes:
    """How long steps of a repair take, and how they end: parameters, since AWS publishes none.

    Attributes:
        reboot: From the reboot until the node is verified.
        launch: From the termination until another node is verified.
        mended: The share of reboots after which the fault is gone.
    """

    reboot: timedelta = timedelta(minutes=10)
    launch: timedelta = timedelta(minutes=20)
    mended: float = 0.5


@dataclass
class _Outage:
    """A node that takes no part: since when, and until when."""

    began: datetime
    ended: datetime | None = None


@dataclass
class RepairShop:
    """The nodes that are broken, and what becomes of them.

    Attributes:
        policy: What the function may do.
        nodes: How many nodes the group has.
        by_hand: How long an operator takes who is asked at a time, in seconds since the month began.
        random: What draws whether a reboot helps.
        times: How long steps take.
    """

    policy: HealthPolicySettings
    nodes: int
    by_hand: Callable[[float], float]
    random: Random
    times: RepairTimes = field(default_factory=RepairTimes)

    def __post_init__(self) -> None:
        """Begin with a group that is whole."""
        self._now = _BEGIN
        self._states = {f"i-{number:017x}": "InService" for number in range(self.nodes)}
        self._records: dict[str, NodeRecord] = {}
        self._record = GroupRecord()
        self._outages: dict[str, _Outage] = {}
        self._over: list[_Outage] = []
        self._due: list[tuple[datetime, Callable[[], None]]] = []
        self._asked: set[str] = set()
        self._launched = self.nodes
        self.outcomes: list[Outcome] = []
        """What was done, in order."""

    def fail(self, at: float, code: str) -> None:
        """Let a node fail.

        Args:
            at: When, in seconds since the month began.
            code: The code that its kernel log has. Empty: it dies without a word.
        """
        self.advance(at)
        healthy = sorted(set(self._states) - set(self._outages))
        node = healthy[self.random.randrange(len(healthy))]
        self._outages[node] = _Outage(began=self._now)
        self._records[node] = NodeRecord(node_group=_GROUP, boot_id="1", reported=self._now)
        if code:
            self._report(node, self._fault(node, code, boot="1"))
            self._later(_DRAINED_AFTER, lambda: self._report(node, self._of(node, ReportKind.DRAINED, boot="1")))
        else:
            down = replace(self._records[node], down_since=self._now + _UNHEALTHY_AFTER)
            self._later(_UNHEALTHY_AFTER, lambda: self._records.update({node: down}))
        self._tick()

    def advance(self, until: float) -> None:
        """Let time pass.

        Args:
            until: Until when, in seconds since the month began.
        """
        end = _BEGIN + timedelta(seconds=until)
        while self._outages and self._now + _TICK <= end:
            self._now += _TICK
            if not self._records:  # only launches are under way
                self._now = max(self._now, min(end, *(when for when, _ in self._due), end))
            self._tick()
        self._now = max(self._now, end)

    def missing_seconds(self, until: float) -> Iterator[float]:
        """Yield for how long each node was missing.

        Args:
            until: The month's end.
        """
        self.advance(until)
        for outage in (*self._over, *self._outages.values()):
            yield ((outage.ended or self._now) - outage.began).total_seconds()

    @property
    def returned(self) -> int:
        """How many nodes came back, or were replaced by another."""
        return len(self._over)

    def _tick(self) -> None:
        due = [act for when, act in self._due if when <= self._now]
        self._due = [(when, act) for when, act in self._due if when > self._now]
        for act in due:
            act()
        context = Context(policy=self.policy, now=self._now, region="us-east-1", statuses_read=True)
        for finding in decide(self._view(), context):
            self._apply(finding)

    def _view(self) -> GroupView:
        standby = frozenset(node for node in self._records if self._states[node] != "InService")
        group = OwnedGroup(
            name="workers-group",
            node_group=_GROUP,
            desired=self.nodes - len(standby),
            minimum=0,
            maximum=self.nodes,
            in_service=len(self._states) - len(standby),
            nodes={node: OwnedNode(state=self._states[node]) for node in self._records},
        )
        return GroupView(
            name=_GROUP,
            traits=AUTO_SCALING_GROUP,
            group=group,
            record=self._record,
            nodes=self._records,
            wanted=PlannedSize(size=self.nodes, standby=standby),
            kept=dict.fromkeys(self._records, ""),
        )

    def _apply(self, finding: Finding) -> None:
        node = finding.instance_id
        self._record = finding.record or self._record
        if finding.outcome in _ACTS and self._record.repair is not None:
            self._record = replace(self._record, repair=replace(self._record.repair, answered=True))
            self.outcomes.append(finding.outcome)
        match finding.outcome:
            case Outcome.CORDON:
                self._states[node] = "Standby"
            case Outcome.REBOOT:
                self._later(self.times.reboot, lambda: self._boot(node))
            case Outcome.RETURN:
                self._states[node] = "InService"
            case Outcome.REPLACE:
                self._replace(node)
            case Outcome.RETURNED:
                self._end(node)
            case outcome if outcome.waits and node not in self._asked:
                self._asked.add(node)
                hours = self.by_hand((self._now - _BEGIN).total_seconds())
                self._later(timedelta(seconds=hours), lambda: self._replace(node))

    def _boot(self, node: str) -> None:
        passed = self.random.random() < self.times.mended
        report = self._of(node, ReportKind.VERIFIED, boot="2", passed=passed)
        self._report(node, report if passed else replace(report, faults=(_reported(FaultKind.CHECK, "gpu_lost"),)))

    def _replace(self, node: str) -> None:
        """Terminate a node, unless that was done; another takes its place when it is verified."""
        if node not in self._states or node not in self._outages:
            return
        del self._states[node]
        self._launched += 1
        new = f"i-{self._launched:017x}"
        self._states[new] = "InService"
        self._outages[new] = self._outages.pop(node)
        self._records.pop(node)
        self._later(self.times.launch, lambda: self._end(new))

    def _end(self, node: str) -> None:
        outage = self._outages.pop(node)
        outage.ended = self._now
        self._over.append(outage)
        self._records.pop(node, None)

    def _later(self, time: timedelta, act: Callable[[], None]) -> None:
        self._due.append((self._now + time, act))

    def _report(self, node: str, report: NodeReport) -> None:
        if node in self._records:
            self._records[node] = self._records[node].with_report(report)

    def _fault(self, node: str, code: str, *, boot: str) -> NodeReport:
        return replace(self._of(node, ReportKind.FAULT, boot=boot), faults=(_reported(FaultKind.XID, code),))

    def _of(self, node: str, kind: ReportKind, *, boot: str, passed: bool = True) -> NodeReport:
        checks = (ReportedCheck(name="gpus", passed=passed, found="8" if passed else "7", floor="8"),)
        return NodeReport(
            cluster="pod",
            node_group=_GROUP,
            instance_id=node,
            boot_id=boot,
            kind=kind,
            at=self._now,
            checks=checks if kind is ReportKind.VERIFIED else (),
        )


def _reported(kind: FaultKind, code: str) -> ReportedFault:
    fault = FAULTS[kind, code]
    return ReportedFault(code=code, kind=kind, action=fault.action, device="", count=1, sentence=fault.meaning)
