"""Which node groups are stopped, where a deploy that replaces what owns their nodes does not lose it.

Tags go with the owner that carries them: when a group is bought in another way, or a Spot Fleet is replaced,
CloudFormation may have deleted the old one before the next tick sees both. So the names are in a parameter, too.
"""

import json
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from cluster_common.errors import AWS_ERRORS, error_code
from cluster_common.failures import Failures
from cluster_power.records import State

if TYPE_CHECKING:
    from mypy_boto3_ssm.client import SSMClient


@dataclass(frozen=True)
class _Found:
    """The names that the function wrote last, and whether they are the parameter's value now."""

    names: frozenset[str]
    is_current: bool


class Stops:
    """The parameter that names the stopped node groups.

    The tags say what is so; the parameter is for owners that come when the old ones are gone. So every tick brings
    it in line with the tags: what an order or an earlier tick did not get to write, and what two of them wrote over
    each other, is right a minute later.

    CloudFormation gives the parameter its first value again with any change of its tags; what the function wrote
    last is in the parameter's history then.
    https://docs.aws.amazon.com/systems-manager/latest/APIReference/API_GetParameterHistory.html
    """

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
        self._asked = False
        self._found: _Found | None = None
        self._is_gone = False

    def read(self, asking: Iterable[str]) -> frozenset[str] | None:
        """Return the node groups that are stopped. None: they could not be read.

        Args:
            asking: The node groups of which it has to be known.
        """
        if self._parameter is None:
            return frozenset()
        if not self._asked:
            self._asked = True
            try:
                self._found = self._ask(self._parameter)
            except AWS_ERRORS as error:
                self._is_gone = error_code(error) == "ParameterNotFound"
                self._failures.add(", ".join(sorted(asking)), "could not read which node groups are stopped", error)
        return self._found.names if self._found else None

    def update(
        self,
        states: Mapping[str, Collection[State | None]],
        *,
        is_still: Callable[[str], bool],
        stopped: Collection[str] = (),
        started: Collection[str] = (),
        known: Collection[str],
    ) -> None:
        """Write down which node groups are stopped, if that is not what is written there.

        Args:
            states: What the tags say of the node groups that are there and were read; two owners have a state each.
            is_still: Says whether a node group's tags say that still: somebody's order may have come in between.
            stopped: The node groups that were ordered to stop; of those that are there the tags say it.
            started: The same of those that were ordered to start.
            known: The node groups in the cluster's file; others are forgotten.
        """
        before = self.read(known)
        if before is None and self._is_gone:
            before = frozenset(known)  # Of one that is not there nobody knows: better stopped than billed.
        if self._parameter is None or before is None:
            return
        after = set(before).union(stopped).difference(started)
        for name, every in states.items():
            is_stopped = set(every) == {State.STOPPED}
            if len(set(every)) == 1 and is_stopped is not (name in after) and is_still(name):
                after ^= {name}
        after &= set(known)
        if self._found == _Found(frozenset(after), is_current=True):
            return
        try:
            value = json.dumps(sorted(after), separators=(",", ":"))
            self._ssm().put_parameter(Name=self._parameter, Type="String", Value=value, Overwrite=True)
        except AWS_ERRORS as error:
            names = ", ".join(sorted(after ^ before)) or "all node groups"
            self._failures.add(names, "could not record which node groups are stopped", error)

    def _ask(self, parameter: str) -> _Found:
        ssm = self._ssm()
        names = _names(ssm.get_parameter(Name=parameter)["Parameter"].get("Value", ""))
        if names is not None:
            return _Found(names, is_current=True)
        pages = ssm.get_paginator("get_parameter_history").paginate(Name=parameter)
        versions = [version for page in pages for version in page["Parameters"]]
        for version in sorted(versions, key=lambda version: version["Version"], reverse=True):
            names = _names(version.get("Value", ""))
            if names is not None:
                return _Found(names, is_current=False)
        return _Found(frozenset(), is_current=False)


def _names(text: str) -> frozenset[str] | None:
    """Read what the parameter says. None: it is nothing that the function writes."""
    try:
        names = json.loads(text)
    except ValueError:
        return None
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        return None
    return frozenset(names)
