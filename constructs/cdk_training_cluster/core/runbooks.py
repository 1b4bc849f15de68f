"""Where the documentation says what to do about an alarm."""

import re

SITE = "https://cdk-training-cluster.readthedocs.io/"
"""The documentation's address."""

_PAGE = f"{SITE}operations/"


def runbook(part: str, alarm: str) -> str:
    """Return the address of what to do about an alarm, which stays the same whatever its users call the constructs.

    Args:
        part: What has the alarm, such as the function's package `cluster_power`.
        alarm: The alarm's id; numbers in it, such as a budget's thresholds, have no address of their own.
    """
    return f"{_PAGE}#{anchor(part, alarm)}"


def anchor(part: str, alarm: str) -> str:
    """Return the anchor of an alarm in the page, such as `power-missing-nodes`.

    Args:
        part: As for `runbook`.
        alarm: As for `runbook`.
    """
    words = re.findall(r"[A-Z]?[a-z]+", f"{part.removeprefix('cluster_')}_{alarm}".partition("Point")[0])
    return "-".join(words).lower()
