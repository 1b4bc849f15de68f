"""Lengths of time as CDK takes them, and as the functions' settings hold them."""

from datetime import timedelta
from typing import cast

from aws_cdk import Duration


def to_time(duration: Duration) -> timedelta:
    """Return a length of time as a function's settings hold it.

    One that is known at deployment only becomes the number that CloudFormation replaces with seconds.

    Args:
        duration: The length of time.
    """
    seconds = duration.to_seconds()
    return cast(timedelta, seconds) if duration.is_unresolved() else timedelta(seconds=seconds)


def to_duration(time: timedelta) -> Duration:
    """Return a length of time as CDK takes it.

    Args:
        time: The length of time.
    """
    return Duration.seconds(time.total_seconds())
