"""Times as tags hold them, and lengths of time as messages show them."""

from datetime import UTC, datetime, timedelta

from cluster_contract.codec import TIME_FORMAT


def time_text(moment: datetime) -> str:
    """Return a time to the second, as a tag can hold it."""
    return moment.astimezone(UTC).strftime(TIME_FORMAT)


def parse_time(text: str) -> datetime:
    """Read a time that `time_text` wrote.

    Raises:
        ValueError: It is not such a time.
    """
    return datetime.strptime(text, TIME_FORMAT).replace(tzinfo=UTC)


def format_minutes(time: timedelta) -> str:
    """Return a length of time as messages show it."""
    count = round(time.total_seconds() / 60)
    return "1 minute" if count == 1 else f"{count} minutes"
