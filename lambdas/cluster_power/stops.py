"""Which node groups are stopped, where a deploy that replaces what owns their nodes does not lose it.

Tags go with the owner that carries them: when a group is bought in another way, or a Spot Fleet is replaced,
CloudFormation may have deleted the old one before the next tick sees both. So the names are in a parameter, too.
"""

import json
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from cluster_common.errors import AWS_ERRORS
from cluster_power.failures import Failures

if TYPE_CHECKING:
    from mypy_boto3_ssm.client import SSMClient


class Stops:
    """The parameter that names the stopped node groups. It is asked only when a group is new or an order is given."""

    def __init__(self, ssm: "Callable[[], SSMClient]", parameter: str | None, failures: Failures) -> None:
        """Know where the names are.

        Args:
            ssm: Makes the client of Systems Manager.
            parameter: The parameter's name. None: there is none, and nothing is known of any group.
            failures: What is told of a call that fails.
        """
        self._ssm = ssm
        self._parameter = parameter
        self._failures = failures

    def read(self, asking: Iterable[str]) -> frozenset[str] | None:
        """Return the node groups that are stopped. None: they could not be read.

        Args:
            asking: The node groups of which it has to be known.
        """
        if self._parameter is None:
            return frozenset()
        try:
            answer = self._ssm().get_parameter(Name=self._parameter)
            return frozenset(_names(answer["Parameter"].get("Value", "")))
        except (*AWS_ERRORS, ValueError) as error:
            self._failures.add(", ".join(sorted(asking)), "could not read which node groups are stopped", error)
            return None

    def change(self, *, stopped: frozenset[str], started: frozenset[str], known: Iterable[str]) -> None:
        """Write down which node groups are stopped from now on, and which no more.

        Args:
            stopped: Those that are stopped now.
            started: Those that are not, now.
            known: The node groups in the cluster's file; others are forgotten.
        """
        before = self.read(stopped | started) if self._parameter else None
        if before is None or self._parameter is None:
            return
        after = ((before - started) | stopped) & frozenset(known)
        if after == before:
            return
        try:
            value = json.dumps(sorted(after), separators=(",", ":"))
            self._ssm().put_parameter(Name=self._parameter, Value=value, Overwrite=True)
        except AWS_ERRORS as error:
            names = ", ".join(sorted(stopped | started))
            self._failures.add(names, "could not remember which node groups are stopped", error)


def _names(text: str) -> list[str]:
    """Read what the parameter says.

    Raises:
        ValueError: It is not a list of names.
    """
    names = json.loads(text)
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise ValueError(f"the parameter must hold a list of node groups, got {text!r}")
    return names
