"""The amounts at which the budget acts, and the record of what it has done."""

from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal

from cluster_contract.codec import Open
from cluster_contract.spend import OnExceed, SpendFunctionSettings

NAME = "acts"
"""The name of the item that holds what the budget has done."""

_WHOLE = 100


@dataclass(frozen=True, kw_only=True)
class Acts(Open):
    """What the budget has done last. Another month, another `on_exceed` or another amount begins anew.

    Attributes:
        month: The name of the month.
        effect: What the budget did.
        budget: The whole budget then, in USD.
        usd: The highest amount in USD that it has acted on. Zero: none.
        since: When it began to act on that amount: a command that an operator has sent for a node group since holds.
        held: The node groups that have had such a command: the budget leaves them alone.
        stop_at: When the warning that was sent is over. None: there is no warning.
        groups: The node groups that were warned of, or are being limited, until a message says that it is done.
    """

    month: str = ""
    effect: OnExceed = OnExceed.NOTIFY
    budget: Decimal = Decimal()
    usd: Decimal = Decimal()
    since: datetime | None = None
    held: tuple[str, ...] = ()
    stop_at: datetime | None = None
    groups: tuple[str, ...] = ()


NO_ACTS = Acts()
"""What the budget has done before it does anything."""


def amounts(settings: SpendFunctionSettings) -> list[Decimal]:
    """Return the amounts in USD at which the budget acts: the whole of it, and each threshold above."""
    shares = {_WHOLE, *(share for share in settings.thresholds if share > _WHOLE)}
    budget = Decimal(str(settings.monthly_usd))
    return [budget * Decimal(str(share)) / _WHOLE for share in sorted(shares)]


def reached(settings: SpendFunctionSettings, usd: Decimal) -> Decimal:
    """Return the highest amount at which the budget acts that some dollars have reached; zero: none."""
    if settings.on_exceed is OnExceed.NOTIFY:
        return Decimal()
    return max((amount for amount in amounts(settings) if usd >= amount), default=Decimal())
