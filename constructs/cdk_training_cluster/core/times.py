"""Lengths of time as CDK takes them, and as the functions' settings hold them."""

from datetime import timedelta
from functools import cache
from typing import cast

from aws_cdk import Duration

from cdk_training_cluster.validation.checks import milliseconds


def to_time(duration: Duration) -> timedelta:
    """Return a length of time as a function's settings hold it.

    One that is known at deployment only becomes the number that CloudFormation replaces with seconds.

    Args:
        duration: The length of time.
    """
    known = milliseconds(duration)
    return cast(timedelta, duration.to_seconds()) if known is None else timedelta(milliseconds=known)


@cache
def to_duration(time: timedelta) -> Duration:
    """Return a length of time as CDK takes it, asking Node.js once.

    Args:
        time: The length of time.
    """
    return Duration.seconds(time.total_seconds())
