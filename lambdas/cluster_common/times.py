"""Times as tags hold them, and lengths of time as messages show them."""

from datetime import timedelta

from cluster_contract.times import parse_time, time_text

__all__ = ["format_minutes", "parse_time", "time_text"]


def format_minutes(time: timedelta) -> str:
    """Return a length of time as messages show it."""
    count = round(time.total_seconds() / 60)
    return "1 minute" if count == 1 else f"{count} minutes"
