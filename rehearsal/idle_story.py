"""Idle stop, rehearsed: what nodes reported, what the deployed function made of it, and what is wrong with that."""

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

from rehearsal.idle_expectation import Fate, IdleExpectation, IdleNode

# What a node that runs on is called at the end.
_CALLED: Mapping[Fate, str] = {
    Fate.DRY_RUN: "stop",
    Fate.RESERVED: "reserved",
    Fate.KEEP: "keep",
    Fate.ORCHESTRATOR: "unstoppable",
}
_SAID_OF = {"busy": "busy", "preparing": "busy", "silent": "unknown"}


@dataclass
class IdleStory:
    """What was reported, and what the function made of it.

    Attributes:
        expectation: What has to become of the nodes.
        reported: What each node reported in the time before the first run, by its id: `busy`, `silent`, `preparing`
            (only its CPUs work) or `idle`; after it all of them are idle.
        ticks: How many minutes after the first each run was, and what it said of each node.
        stopped: The ids of the nodes that it stopped.
    """

    expectation: IdleExpectation
    reported: dict[str, str] = field(default_factory=dict)
    ticks: list[dict[str, Any]] = field(default_factory=list)
    stopped: set[str] = field(default_factory=set)

    def add(self, minutes_later: int, summary: Mapping[str, Any]) -> None:
        """Take in what a run said.

        Args:
            minutes_later: How many minutes after the first it was.
            summary: What the function returned.
        """
        nodes = summary["nodes"]
        self.ticks.append({"minutes_later": minutes_later, "breaker": summary["breaker"], "nodes": nodes})
        self.stopped |= {node["instance_id"] for node in nodes if node["stopped"]}

    @property
    def last(self) -> dict[str, dict[str, Any]]:
        """The last that was said of each node, and how many minutes after the first run, by its id."""
        return {
            node["instance_id"]: {**node, "minutes_later": tick["minutes_later"]}
            for tick in self.ticks
            for node in tick["nodes"]
        }

    def results(self) -> dict[str, Any]:
        """Return it as it is written down."""
        return {
            "reported": self.reported,
            "wanted": {node.id: self.expectation.fate(node).value for node in self.expectation.nodes},
            "verdicts": {one: node["verdict"] for one, node in self.last.items()},
            "stopped": sorted(self.stopped),
            "ticks": self.ticks,
        }

    def differences(self) -> list[str]:
        """Say what the function should have done otherwise, a sentence each."""
        found = [*self._of_runs()]
        for node in self.expectation.nodes:
            found += [*self._at_first(node), *self._unwarned(node), *self._at_last(node)]
        return [f"idle stop: {one}" for one in found]

    def _of_runs(self) -> Iterator[str]:
        """Nothing goes dark in this story, and nothing comes back that was stopped."""
        there = {node.id for node in self.expectation.nodes}
        for tick in self.ticks:
            when = _when(tick)
            if tick["breaker"]:
                yield f"{when} nothing was done, though no node had gone dark: {tick['breaker']}"
            for node in tick["nodes"]:
                if node["instance_id"] not in there:
                    yield f"{when} there was {node['instance_id']}, which was stopped or is no node of the cluster"
                if node["stopped"]:
                    there.discard(node["instance_id"])

    def _at_first(self, node: IdleNode) -> Iterator[str]:
        """A node is called what it reported; an idle one is not called idle while a peer works or is silent."""
        said = self._said(node, self.ticks[0])
        verdict, own = said.get("verdict", "nothing"), self.reported[node.id]
        peers = {self.reported[one.id] for one in self.expectation.together(node)}
        if self.expectation.fate(node) is Fate.KEEP:
            right: Collection[str] = ("keep",)
        elif own in _SAID_OF:
            right = (_SAID_OF[own],)
        else:
            right = ("warn", "reserved") if peers == {"idle"} else ("busy", "unknown")
        if verdict not in right:
            yield f"{node.id} was {own} and was called {verdict}{_because(said)}"

    def _unwarned(self, node: IdleNode) -> Iterator[str]:
        """People are warned in time of every stop, and work in between takes the warning back."""
        warned, last = None, None
        warning = self.expectation.policy(node).warning
        for tick in self.ticks:
            said, minutes = self._said(node, tick), tick["minutes_later"]
            verdict = said.get("verdict")
            if verdict == "warn":
                warned = warned if last == "warn" else minutes
            elif verdict == "stop" and warned is None:
                yield f"{node.id} was called stop {_when(tick)}, and no warning had been sent"
            elif verdict == "stop" and warned is not None and timedelta(minutes=minutes - warned) < warning:
                yield (
                    f"{node.id} was called stop {minutes - warned} minutes after the warning, which has to come "
                    f"{warning / timedelta(minutes=1):g} minutes before"
                )
            elif verdict not in ("stop", "deferred"):
                warned = None
            if said.get("stopped") and verdict != "stop":
                yield f"{node.id} was stopped {_when(tick)}, though it was called {verdict}"
            last = verdict

    def _at_last(self, node: IdleNode) -> Iterator[str]:
        fate, last = self.expectation.fate(node), self.last.get(node.id, {})
        verdict = last.get("verdict", "nothing")
        if fate is Fate.DRY_RUN and any(self._said(node, tick).get("verdict") == "stop" for tick in self.ticks):
            # The runs are further apart than they really are, so that it may have been warned of again since.
            verdict = "stop"
        wanted = "stopped" if fate is Fate.STOPPED else f"called {_CALLED[fate]} and left running"
        became = "stopped" if node.id in self.stopped else f"called {verdict} and left running"
        if became != wanted:
            yield f"{node.id} was idle to the end and was {became}, not {wanted}{_because(last)}"

    def _said(self, node: IdleNode, tick: Mapping[str, Any]) -> Mapping[str, Any]:
        return next((said for said in tick["nodes"] if said["instance_id"] == node.id), {})


def _when(tick: Mapping[str, Any]) -> str:
    return f"{tick['minutes_later']} minutes after the first run" if tick["minutes_later"] else "in the first run"


def _because(said: Mapping[str, Any]) -> str:
    return f": {said['reason']}" if said else ""
