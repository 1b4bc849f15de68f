"""One run: read, price, count, report."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from datetime import datetime
from decimal import Decimal

from aws_lambda_powertools import Logger

from cluster_common.actions import Action
from cluster_common.clients import Clients
from cluster_common.errors import AWS_ERRORS
from cluster_common.failures import Failures
from cluster_common.owners.groups import OwnedGroup
from cluster_common.owners.kinds import OWNER_KINDS
from cluster_common.owners.making import make_owners
from cluster_common.state_table import StateChangedError, StateTable
from cluster_contract.codec import encode, read
from cluster_contract.spend import SpendFunctionSettings, SpendKind
from cluster_contract.state import StatePart
from cluster_spend.acts import NAME as ACTS
from cluster_spend.acts import NO_ACTS, Acts
from cluster_spend.charges import Charge, Item, unit_seconds, units_now
from cluster_spend.exceeding import Exceeding
from cluster_spend.ledger import Ledger, UnreadableMonthError
from cluster_spend.listed_prices import ListedPrices
from cluster_spend.months import LastRun
from cluster_spend.nodes import BilledNode, node_charges, nodes_of, read_nodes
from cluster_spend.prices import Figure, Prices, spot_pools
from cluster_spend.reports import Spend, emit_failure, emit_metrics, gap_sentence, summarize
from cluster_spend.reservations import Reservation, paid_blocks, read_reservations, reservation_charges
from cluster_spend.spot import spot_prices

_LATER = "the next run also counts what was billed since the last run that succeeded"


@dataclass(frozen=True, kw_only=True)
class _Seen:
    """What EC2 says of the cluster.

    Attributes:
        nodes: Its instances.
        reservations: Its reservations and Capacity Blocks.
        now: When.
    """

    nodes: list[BilledNode]
    reservations: list[Reservation]
    now: datetime

    @property
    def last(self) -> LastRun:
        """What the next run has to know of it."""
        return LastRun(
            running={node.id: node.node_group for node in self.nodes if node.runs},
            ended=frozenset(node.id for node in self.nodes if node.has_unknown_end),
            held={one.id: one.instances for one in self.reservations if one.is_billed_at(self.now)},
        )


class SpendRun:
    """Count what a cluster costs, once. A run that cannot read everything counts nothing: the next one does."""

    def __init__(
        self, settings: SpendFunctionSettings, clients: Clients, logger: Logger, *, account: str, now: datetime
    ) -> None:
        """Read nothing yet.

        Args:
            settings: The function's settings.
            clients: What it talks to.
            logger: Where it writes what it finds.
            account: The id of the account that it runs in.
            now: The time.
        """
        self._settings = settings
        self._clients = clients
        self._logger = logger
        self._account = account
        self._now = now.replace(microsecond=0)
        self._failures = Failures(logger)
        self._table = StateTable(clients.dynamodb(), settings.state_table, StatePart.SPEND.key(settings.cluster))
        self._ledger = Ledger(self._table, settings.region)

    def run(self, action: Action) -> dict[str, object]:
        """Do the action and return a summary for operators.

        Raises:
            PartialFailureError: Something failed, after everything was tried.
        """
        seen = self._read()
        if seen is None:
            if action is Action.TICK:
                emit_failure(self._settings)
            self._failures.raise_all()
            return {}
        charges = list(self._charges(seen))
        asked = {**self._ask_prices(charges, action), **paid_blocks(seen.reservations)}
        prices = Prices(settings=self._settings, asked=asked)
        counted = action is Action.TICK and self._count(charges, seen, prices)
        month = self._ledger.month(self._now)
        ahead = unit_seconds(charges, self._now, month.end)
        spend = Spend(
            now=self._now,
            month=month,
            units=units_now(charges, self._now),
            unpriced=self._ledger.unpriced,
            ahead=ahead,
            prices=prices,
        )
        self._log(spend)
        acts = self._read_acts()
        if counted:
            acts = self._act(spend, seen, acts)
        if action is Action.TICK:
            emit_metrics(self._settings, spend, complete=not self._failures)
        self._failures.raise_all()
        return summarize(self._settings, action.value, spend, acts)

    def _read(self) -> _Seen | None:
        """Read the months, the instances and the reservations. None: not all of them could be read."""
        what = "its month-to-date could not be read"
        try:
            self._ledger.read(self._now)
            what = "its instances could not be read"
            nodes = read_nodes(self._clients.ec2(), self._settings, self._ledger.last.running)
            nodes += nodes_of(self._read_groups())
            what = "its capacity reservations could not be read"
            ids = {one for group in self._settings.groups.values() for one in group.reservations}
            reservations = read_reservations(self._clients.ec2(), ids, self._account)
            return _Seen(nodes=nodes, reservations=reservations, now=self._now)
        except UnreadableMonthError as error:
            self._failures.add_sentence(self._settings.cluster, str(error))
        except AWS_ERRORS as error:
            self._failures.add(self._settings.cluster, f"{what}; {_LATER}", error)
        return None

    def _read_groups(self) -> Iterator[OwnedGroup]:
        """Read the groups whose nodes EC2 does not describe."""
        settings = self._settings
        elsewhere = {
            name: group for name, group in settings.groups.items() if not OWNER_KINDS[group.owner_kind].is_on_ec2
        }
        for owner in make_owners(elsewhere, self._clients, settings.cluster, self._now, stack_id=settings.stack_id):
            reading = owner.read()
            for error in reading.unread.values():
                raise error
            yield from reading.groups

    def _ask_prices(self, charges: Iterable[Charge], action: Action) -> dict[str, Figure]:
        """Ask AWS what its price book does not say: Spot Instances in each run, others once a day."""
        known = Prices(settings=self._settings)
        items = {*(charge.item for charge in charges), *self._ledger.unpriced}
        names = {item.price for item in items if known.is_asked(item.price)}
        ledger, region = self._ledger, self._settings.region
        lists = ListedPrices(self._clients.pricing, self._table, ledger.prices, region, self._logger)
        listed = lists.figures(names, self._now, refresh=action is Action.TICK)
        try:
            return {**listed, **spot_prices(self._clients.ec2(), spot_pools(names), self._now)}
        except AWS_ERRORS as error:
            what = "its Spot prices could not be read; the next run that reads them counts its Spot Instances"
            self._failures.add(self._settings.cluster, what, error)
            return listed

    def _charges(self, seen: _Seen) -> Iterator[Charge]:
        through, last, now = self._ledger.through(self._now), self._ledger.last, self._now
        if self._ledger.is_new:
            # Nothing is counted that is not known: when a node ended that no run has seen running, and how many
            # instances a reservation held before; a Capacity Block holds as many from its start to its end.
            last = replace(seen.last, running={}, held={one.id: 0 for one in seen.reservations if not one.block})
        of_reservations = reservation_charges(seen.reservations, self._settings, last.held, now)
        yield from node_charges(
            seen.nodes,
            self._settings,
            reserved={
                one.id: of_reservations[one.id]
                for one in seen.reservations
                if one.id in of_reservations and not one.shared_by
            },
            ran=last.running,
            ended=last.ended,
            through=through,
            now=now,
        )
        for charges in of_reservations.values():
            yield from charges
        # Since when the fixed parts exist is not known: they are counted from the first run on.
        start = now if self._ledger.is_new else through
        for kind, units in self._settings.fixed.items():
            for price, count in units.items():
                item = Item("", SpendKind(kind), price)
                since = max(start, self._settings.starts.get(price, start))
                yield Charge(item=item, units=Decimal(str(count)), start=since)

    def _count(self, charges: list[Charge], seen: _Seen, prices: Prices) -> bool:
        """Count what is billed until now, and say whether that was done."""
        try:
            self._ledger.count(charges, self._now, prices, seen.last)
        except StateChangedError:
            self._logger.warning("another run counted at the same moment; the next run counts what is left")
        except AWS_ERRORS as error:
            self._failures.add(self._settings.cluster, f"its month-to-date could not be written; {_LATER}", error)
        else:
            return True
        return False

    def _read_acts(self) -> Acts:
        """Return what the budget has done. Where the record is lost or cannot be read, the budget acts anew."""
        item = self._ledger.acts
        if item.version is None:
            return NO_ACTS
        try:
            return read(Acts, item.values)
        except ValueError:
            self._logger.warning(
                f"the item {ACTS} of the state table {self._table.name} does not hold what the spend function "
                "writes: "
                "the budget acts as if it had not acted yet, and warns again before a stop"
            )
            return NO_ACTS

    def _act(self, spend: Spend, seen: _Seen, acts: Acts) -> Acts:
        """Let the budget act where it is exceeded, and return what it has done."""
        exceeding = Exceeding(self._settings, self._clients, self._failures, acts, record=self._record)
        try:
            exceeding.act(spend, seen.nodes, seen.last.held)
        except StateChangedError:
            self._logger.warning("another run acted on the budget at the same moment; the next run does what is left")
        except AWS_ERRORS as error:
            what = "what the budget did could not be recorded; the next run records it, and may notify again"
            self._failures.add(self._settings.cluster, what, error)
        return exceeding.acts

    def _record(self, acts: Acts) -> None:
        self._ledger.acts = self._table.write(ACTS, encode(acts), seen=self._ledger.acts)

    def _log(self, spend: Spend) -> None:
        for name in spend.unknown:
            self._logger.warning(
                f"the price of {name} is not known: it is billed, and counted once its price is known; state one in "
                "the "
                "budget's prices"
            )
        gap = gap_sentence(spend.month)
        if gap:
            self._logger.warning(gap)
