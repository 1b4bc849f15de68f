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
    shares = _joined([f"{each:g} % ({budget.monthly_usd * each / 100:,.0f} USD)" for each in budget.thresholds])
    accounts = [f"linked account {each}" for each in budget.linked_accounts]
    yield (
        f"Billing alarms: {count} in us-east-1, for {count * 0.1:,.2f} USD a month, at {shares} of a month's "
        f"{budget.monthly_usd:,.0f} USD"
    )
    yield f"  of the whole account: {_joined(['in total', *budget.services])}"
    if accounts:
        yield f"  and the same of {_joined(accounts)}"
    yield f"  notify {', '.join(budget.emails) or 'nobody'}"


def _joined(words: list[str]) -> str:
    return " and ".join([", ".join(words[:-1]), words[-1]] if len(words) > 1 else words)
