"""Times as tags hold them."""

from datetime import UTC, datetime

_FORMAT = "%Y-%m-%dT%H:%M:%SZ"


def time_text(moment: datetime) -> str:
    """Return a time to the second, as a tag can hold it."""
    return moment.astimezone(UTC).strftime(_FORMAT)


def parse_time(text: str) -> datetime:
    """Read a time that `time_text` wrote.

    Raises:
        ValueError: It is not such a time.
    """
    return datetime.strptime(text, _FORMAT).replace(tzinfo=UTC)
