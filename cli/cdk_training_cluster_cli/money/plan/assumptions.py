"""What a plan assumes: every figure that comes neither from the cluster file nor from a price list."""

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal, InvalidOperation

from cdk_training_cluster.prices.names import planned_names, wrong_name
from cluster_contract import spend

HOURS_OF_A_MONTH = Decimal(spend.HOURS_OF_A_MONTH)

_MOST = {"contingency_percent": 1000, "interruption_percent": 1000, "savings_plan_percent": 100}
_DIGITS = 18
_MOST_HOURS = 87_600
_WITH_THOUSANDS = re.compile(r"[+-]?[0-9]{1,3}(,[0-9]{3})+(\.[0-9]*)?")
# Decimal takes 1_000 and digits of other scripts, too; what is infinite or no number is refused by its name.
_NUMBER = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)(e[+-]?[0-9]+)?|[+-]?inf(inity)?|[+-]?s?nan", re.IGNORECASE)


@dataclass(frozen=True, kw_only=True)
class Assumptions:
    """What a plan assumes.

    Amounts are `Decimal`, as in the price book.

    Attributes:
        hours: How many hours the run takes, with all nodes running, or as their schedules let them.
        contingency_percent: What is added to the total for restarts, failures and experiments.
        interruption_percent: How much longer the same work takes on Spot Instances: work since the last checkpoint is
            lost, and replacements take a while to come.
        savings_plan_percent: By how much a Savings Plan lowers the On-Demand price, as your offer
            says. None: unknown.
        dataset_gb: How much training data lies in S3, in GB. None: unknown.
        checkpoints: How many checkpoints are written.
        checkpoint_gb: How large each is, in GB.
        nat_gb: How much goes through the NAT gateway during the run, in GB. None: unknown.
        parameters: How many parameters the model has. None: no work is compared.
        tokens: How many tokens it is trained on.
        utilization_percent: Which part of an accelerator's peak training sustains (model FLOPs utilization).
        prices: Prices that you state, by instance type or by the names of `UNITS`.
        costs: What lines cost for the run as you state it, such as `compute.workers` or `storage.file-system`.
    """

    hours: Decimal = HOURS_OF_A_MONTH
    contingency_percent: Decimal = Decimal(20)
    interruption_percent: Decimal = Decimal(10)
    savings_plan_percent: Decimal | None = None
    dataset_gb: Decimal | None = None
    checkpoints: int = 0
    checkpoint_gb: Decimal = Decimal(0)
    nat_gb: Decimal | None = None
    parameters: Decimal | None = None
    tokens: Decimal | None = None
    utilization_percent: Decimal = Decimal(40)
    prices: Mapping[str, Decimal] = field(default_factory=dict)
    costs: Mapping[str, Decimal] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Check every figure.

        Raises:
            ValueError: One is no number, below zero, or too high, or a name is unknown.
        """
        for name, value in vars(self).items():
            if isinstance(value, Decimal):
                _check(name, value, _MOST.get(name))
        if self.hours > _MOST_HOURS:
            raise ValueError(f"--hours must be at most {_MOST_HOURS:,}, which are ten years, got {self.hours:f}")
        for name in ("hours", "utilization_percent", "parameters", "tokens"):
            if getattr(self, name) == 0:
                raise ValueError(f"{_option(name)} must be above 0, got 0")
        _check("utilization_percent", self.utilization_percent, 100)
        if (self.parameters is None) != (self.tokens is None):
            raise ValueError("--parameters and --tokens go together: give both, or neither")
        if self.checkpoints < 0:
            raise ValueError(f"--checkpoints must be at least 0, got {self.checkpoints}")
        _check_size("--checkpoints", Decimal(self.checkpoints))
        for name, usd in self.prices.items():
            _check(f"price of {name}", usd, None)
        for name, usd in self.costs.items():
            _check(f"cost of {name}", usd, None)


def of_a_plan(prices: Mapping[str, float]) -> dict[str, Decimal]:
    """Return those prices of a cluster file's budget that a plan uses: of the catalog's types and of units.

    Args:
        prices: The budget's prices.
    """
    return {name: Decimal(str(usd)) for name, usd in prices.items() if name in planned_names()}


def check_price(name: str, others: Collection[str]) -> None:
    """Refuse a price that nothing in a plan has.

    Args:
        name: The name of the price.
        others: The types of nodes that the catalog does not have.

    Raises:
        ValueError: It is neither of the catalog, nor of `UNITS`, nor one of those.
    """
    if name not in planned_names() and name not in others:
        raise ValueError(f"--price {wrong_name(name, of_budget=False)}")


def pairs(option: str, texts: Sequence[str], read: Callable[[str, str], Decimal]) -> dict[str, Decimal]:
    """Read options of the form `NAME=USD`, each name once.

    Args:
        option: The option.
        texts: What was given to it.
        read: Reads an amount; its first argument says which one it is.

    Raises:
        ValueError: One has another form, a wrong amount or the name of another.
    """
    found: dict[str, Decimal] = {}
    for text in texts:
        name, equals, amount = text.rpartition("=")
        if not equals or not name:
            raise ValueError(f"{option} must be NAME=USD, got {text!r}")
        if name in found:
            raise ValueError(f"{option} {name} is given twice; leave one of them out")
        found[name] = read(f"{option} {name}", amount)
    return found


def number(option: str, text: str) -> Decimal:
    """Read a number that a user wrote: `336`, `0.5`, `70e9`, `20,000`; commas separate thousands alone.

    Args:
        option: The option it was given to.
        text: What was written.

    Raises:
        ValueError: It is no finite number, or too large or too small to count with.
    """
    written = text.strip()
    if _WITH_THOUSANDS.fullmatch(written):
        written = written.replace(",", "")
    try:
        value = Decimal(written if _NUMBER.fullmatch(written) else "")
    except InvalidOperation:
        raise ValueError(f"{option} must be a number, such as 336 or 70e9, got {text!r}") from None
    if not value.is_finite():
        raise ValueError(f"{option} must be a finite number, got {text!r}")
    _check_size(option, value)
    return value


def _option(name: str) -> str:
    return f"--{name.removesuffix('_percent').replace('_', '-')}"


def _check(name: str, value: Decimal, most: int | None) -> None:
    shown = name if " " in name else _option(name)
    if not value.is_finite():
        raise ValueError(f"{shown} must be a finite number, got {value}")
    _check_size(shown, value)
    if value < 0 or (most is not None and value > most):
        allowed = "at least 0" if most is None else f"0 to {most}"
        raise ValueError(f"{shown} must be {allowed}, got {value:f}")


def _check_size(shown: str, value: Decimal) -> None:
    """Refuse what sums and quotients of a plan could not hold."""
    if value != 0 and abs(value.adjusted()) > _DIGITS:
        raise ValueError(f"{shown} must be 0, or of a size between 1e-{_DIGITS} and 1e{_DIGITS}, got {value}")
