"""Says in a few lines which billing alarms there will be."""

from collections.abc import Iterator

from cdk_training_cluster import Budget


def budget_lines(budget: Budget | None) -> Iterator[str]:
    """Say which billing alarms a budget makes.

    Args:
        budget: The budget, if there is one.
    """
    if budget is None:
        yield "Billing alarms: none (no budget)"
        return
    count = budget.alarm_count
    shares = _joined([f"{each:g} % ({_usd(budget.monthly_usd * each / 100)})" for each in budget.thresholds])
    accounts = [f"linked account {each}" for each in budget.linked_accounts]
    yield (
        f"Billing alarms: {count} in us-east-1, for {count * 0.1:,.2f} USD a month, at {shares} of a month's "
        f"{_usd(budget.monthly_usd)}"
    )
    whole = "organization" if accounts else "account; in a management account, of the organization"
    yield f"  of the whole {whole}: {_joined(['in total', *budget.services])}"
    if accounts:
        yield f"  and the same of {_joined(accounts)}"
    yield f"  notify {', '.join(budget.emails) or 'nobody'}"


def _usd(amount: float) -> str:
    return f"{amount:,.2f} USD".replace(".00 ", " ")


def _joined(words: list[str]) -> str:
    return " and ".join([", ".join(words[:-1]), words[-1]] if len(words) > 1 else words)
