"""Histories of a cluster's dollars, drawn by a number: nodes come and go, runs are missed, fail and come twice.

The oracle integrates price and time exactly, from what was drawn; nothing here is the function's own arithmetic.
"""

from collections import Counter
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from fractions import Fraction
from random import Random

from cluster_common.errors import PartialFailureError
from cluster_contract.spend import OnExceed
from cluster_contract.state import Sender
from fake_instances import FakeNode
from spend_scene import SpendScene

_USD = {"p5.48xlarge": Fraction("55.04"), "g5.xlarge": Fraction("1.006")}
_COUNT = 2
WARNING = timedelta(minutes=30)
TICK = timedelta(minutes=5)

# What a run counts is rounded to micro-dollars, for each kind of charge.
_ROUNDING = Fraction(3, 10**6)

_FAULTS = (
    ("ec2", "DescribeInstances", "RequestLimitExceeded"),
    ("dynamodb", "Query", "ThrottlingException"),
    ("dynamodb", "PutItem", "ThrottlingException"),
    ("lambda_", "Invoke", "ServiceException"),
)


@dataclass
class Billed:
    """One node, and when it was billed.

    Attributes:
        seen_gone: Until when a node is billed of whose end EC2 tells no time: until a run has seen it gone.
    """

    node: FakeNode
    start: datetime
    end: datetime | None = None
    told: bool = True
    seen_gone: datetime | None = None

    def usd(self, since: datetime, until: datetime) -> Fraction:
        """Return what it costs between two times."""
        end = min(until, (self.end if self.told else self.seen_gone) or until) if self.end else until
        seconds = max((end - max(self.start, since)).total_seconds(), 0)
        return _USD[self.node.instance_type] * Fraction(int(seconds), 3600)


class SpendHistory:
    """One history.

    Attributes:
        met: What has happened, and how often.
    """

    def __init__(self, seed: int) -> None:
        """Draw a budget that is reached sooner or later, or never, before or after the end of a month."""
        self.seed, self.draw, self.met = seed, Random(seed), Counter[str]()  # noqa: S311 (a drawn history)
        self.budget = self.draw.choice([150, 300, 600, 900, 5000])
        self.effect = self.draw.choice([OnExceed.STOP, OnExceed.NO_NEW_NODES, OnExceed.NOTIFY])
        details = {"monthly_usd": self.budget, "thresholds": (50.0, 100.0), "on_exceed": self.effect}
        self.scene = SpendScene(details={**details, "warning": WARNING})
        self.scene.now = datetime(2026, 11, self.draw.choice([10, 30]), self.draw.randint(12, 23), tzinfo=UTC)
        self.group = self.scene.deploy(_COUNT)
        self.nodes = [Billed(node=one, start=one.launched) for one in self.scene.ec2.nodes.values()]
        self.counted = datetime.min.replace(tzinfo=UTC)
        self.reached: dict[str, datetime] = {}
        self.warned: list[datetime] = []
        self.held: dict[str, datetime] = {}
        self.acted = Counter[str]()

    @property
    def month(self) -> str:
        """The month of the last run that counted."""
        return f"{self.counted:%Y-%m}"

    def run(self, turns: int) -> None:
        """Let runs come, and everything happen in between."""
        for _ in range(turns):
            early = timedelta(seconds=self.draw.randint(0, 240))
            self._pass(early)
            self._happen(early)
            self._tick(TICK * self.draw.choice([1, 1, 1, 1, 1, 2, 3, 12]) - early)
        self.scene.sns.fails = False
        for _ in range(16):
            self._tick(TICK)
        self._check_effect()

    def _happen(self, early: timedelta) -> None:
        """Let something happen some time after a run."""
        chance, draw, scene = self.draw.random(), self.draw, self.scene
        mine = [one for one in self.nodes if one.end is None and one.node.tags[_NODE_GROUP] == "lab"]
        if chance < 0.1:
            kind = draw.choice(list(_USD))
            age = timedelta(seconds=draw.randint(0, int(early.total_seconds())))
            made = scene.add(draw.randint(1, 3), node_group="lab", age=age, instance_type=kind)
            self._meet("nodes come")
            for node in made:
                node.instance_type = kind
                self.nodes.append(Billed(node=node, start=node.launched))
        elif chance < 0.2 and mine:
            one = draw.choice(mine)
            one.told = draw.random() < 0.7
            self._end(one)
            scene.end(one.node, told=one.told)
        elif chance < 0.3:
            service, operation, code = draw.choice(_FAULTS)
            getattr(scene, service).fail_next(operation, code, after=draw.choice([0, 0, 1]))
            self._meet(f"{operation} fails")
        elif chance < 0.33:
            scene.sns.fails = not scene.sns.fails
            self._meet("topic fails or recovers")
        elif chance < 0.36 and self.effect is not OnExceed.NOTIFY:
            scene.power.now = scene.now
            scene.power.order("start", by="ana")
            order = scene.power.recorded("workers").order
            # A start of a group that runs changes nothing, and is not recorded.
            is_recorded = order is not None and order.since == scene.now
            self._meet("operator starts" if is_recorded else "operator starts what runs")
            if is_recorded:
                self.held[f"{scene.now:%Y-%m}"] = scene.now

    def _tick(self, time: timedelta) -> None:
        """Let time pass, and the function run, once or twice at the same moment."""
        scene, before = self.scene, len(self.scene.ordered)
        sent = len(scene.sns.messages)
        self._pass(time)
        for _ in range(2 if self.draw.random() < 0.1 else 1):
            with suppress(PartialFailureError):
                scene.run("tick")
        self._observe()
        self.warned += [scene.now for one in scene.sns.messages[sent:] if "will be stopped" in one["Subject"]]
        self._check_orders(scene.ordered[before:])

    def _pass(self, time: timedelta) -> None:
        scene = self.scene
        scene.now += time
        scene.power.now = scene.now
        self.group.settle(scene.now)
        running = [one for one in self.nodes if one.end is None and one.node.tags[_NODE_GROUP] == "workers"]
        for one in running[self.group.desired :]:
            self._end(one)
            scene.end(one.node)
        for node in scene.add(max(0, self.group.desired - len(running))):
            self.nodes.append(Billed(node=node, start=node.launched))

    def _end(self, one: Billed) -> None:
        one.end = self.scene.now
        self._meet("node ends" if one.told else "node ends, and EC2 tells no time")

    def _observe(self) -> None:
        """Compare what is counted with the exact integral, if the run has counted."""
        month = f"{self.scene.now:%Y-%m}"
        try:
            item = self.scene.month(month)
        except KeyError:
            return
        if item["through"] != f"{self.scene.now:%Y-%m-%dT%H:%M:%SZ}":
            self._meet("run counts nothing")
            return
        if self.month != month and self.counted.year > 1:
            self._meet("month ends")
        self.counted = self.scene.now
        self._meet("run counts")
        for one in self.nodes:
            if one.end is not None and one.seen_gone is None:
                one.seen_gone = self.counted
        for name in {month, *("2026-11" for _ in [0] if ("spend#base-pod", "2026-11") in self.scene.dynamodb.items)}:
            exact, found = self.exact(name), Fraction(sum(self.scene.month(name)["spent"].values()), 10**6)
            where = f"history {self.seed} at {self.counted}: {name} is {float(found)}, and exactly {float(exact)}"
            assert abs(found - exact) <= _ROUNDING * self.met["run counts"], where
        if self.exact(month) >= self.budget:
            self.reached.setdefault(month, self.counted)

    def exact(self, month: str) -> Fraction:
        """Return what the nodes cost in a month, until the last run that counted."""
        start = datetime.strptime(month, "%Y-%m").replace(tzinfo=UTC)
        end = min(self.counted, (start + timedelta(days=32)).replace(day=1))
        return sum((one.usd(start, end) for one in self.nodes), Fraction())

    def _check_orders(self, orders: list[dict[str, object]]) -> None:
        now, month = self.scene.now, f"{self.scene.now:%Y-%m}"
        for order in orders:
            where = f"history {self.seed} at {now}: {order}"
            self._meet(f"budget orders {order['action']}")
            assert order["action"] == {OnExceed.STOP: "stop", OnExceed.NO_NEW_NODES: "limit"}.get(self.effect), where
            assert month in self.reached, f"{where}: the budget is not reached"
            held = self.held.get(month)
            assert held is None or held < self.reached[month], f"{where}: an operator has started it"
            if self.effect is OnExceed.STOP:
                warned = [one for one in self.warned if one >= self.reached[month]]
                assert warned, f"{where}: no warning was sent"
                assert now - warned[0] >= WARNING, f"{where}: the warning is of {warned[0]}"
        order_of = self.scene.power.recorded("workers").order
        if orders and order_of is not None and order_of.by == Sender.BUDGET and order_of.since == now:
            self.acted[month] += 1
        assert self.acted[month] <= 1, f"history {self.seed} at {now}: the budget has acted twice"

    def _check_effect(self) -> None:
        """Say that a budget that was reached long ago has had its effect, unless an operator's start holds."""
        month, order = f"{self.scene.now:%Y-%m}", self.scene.power.recorded("workers").order
        where = f"history {self.seed}: {order}, reached {self.reached}, held {self.held}"
        is_old = month in self.reached and self.scene.now - self.reached[month] >= WARNING + 6 * TICK
        held = self.held.get(month)
        if not is_old or (held is not None and held >= self.reached[month]):
            return
        assert order is not None, where
        if self.effect is OnExceed.STOP:
            assert (order.state.value, self.group.desired) == ("stopped", 0), where
            self._meet("stopped in the end")
        elif self.effect is OnExceed.NO_NEW_NODES:
            assert order.state.value == "limited", where
            self._meet("limited in the end")
        else:
            assert not self.scene.ordered, where

    def _meet(self, what: str) -> None:
        self.met[what] += 1


_NODE_GROUP = "cdk-training-cluster:node-group"
