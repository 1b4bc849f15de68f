"""What to do about each fault of a node: one table, `faults.json`, for nodes, functions and orchestrators alike.

It runs on nodes too, with Python 3.9 and its standard library.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from enum import Enum
from pathlib import Path
from typing import Any, NamedTuple


class FaultAction(str, Enum):
    """What ends a fault."""

    REPLACE = "replace"
    """Another node: the GPU or its links are broken."""

    REBOOT = "reboot"
    """A reboot, which resets the GPU."""

    OBSERVE = "observe"
    """Nothing yet: the driver has mended it, or says by another fault what it needs."""

    APPLICATION = "application"
    """Another program: the job itself did something wrong."""

    @property
    def drains(self) -> bool:
        """Whether the node takes no new job until the action is done."""
        return self in (FaultAction.REPLACE, FaultAction.REBOOT)


class FaultKind(str, Enum):
    """Where a fault is seen."""

    XID = "xid"
    """An error of NVIDIA's GPU driver, in the kernel's log."""

    SXID = "sxid"
    """An error of NVIDIA's NVSwitch driver, in the kernel's log."""

    NEURON = "neuron"
    """A hardware error that the Neuron runtime writes into the kernel's log."""

    CHECK = "check"
    """A check of the node itself, by `cluster-node watch` or `cluster-node verify`."""


class Rule(NamedTuple):
    """Say which action the text of a fault calls for, in place of its row's.

    Attributes:
        action: The action.
        text: A regular expression that the text holds.
        register: The number, from 1, of the register in the text's parentheses whose bits decide.
        bits: Bits of the register of which one is set.
        only: Whether the rule asks that no other bit of any register is set.
    """

    action: FaultAction
    text: str = ""
    register: int = 0
    bits: tuple[int, ...] = ()
    only: bool = False

    def applies(self, text: str) -> bool:
        """Say whether the text of a fault calls for the rule's action."""
        if self.text:
            return re.search(self.text, text) is not None
        registers = _registers(text)
        mask = sum(1 << bit for bit in self.bits)
        if len(registers) < self.register or not registers[self.register - 1] & mask:
            return False
        others = [value & ~mask if at == self.register else value for at, value in enumerate(registers, start=1)]
        return not (self.only and any(others))


class Fault(NamedTuple):
    """Describe one fault.

    Attributes:
        code: The Xid or SXid as text, `*` for any that has no row, or the name of a Neuron error or a check.
        kind: Where it is seen.
        action: What ends it.
        meaning: What it means, in a sentence without its full stop.
        source: The address of the document that says so.
        repeat: What ends it when the same device had it already within the window. Default: - its action.
        rules: What its text decides; the first that applies counts. Default: - nothing.
    """

    code: str
    kind: FaultKind
    action: FaultAction
    meaning: str
    source: str
    repeat: FaultAction | None = None
    rules: tuple[Rule, ...] = ()

    def action_for(self, text: str = "", *, repeated: bool = False) -> FaultAction:
        """Return what ends the fault.

        Args:
            text: The line in which it was seen. Default: - it is not known.
            repeated: Whether the same device had it already within the window. Default: - no.
        """
        action = next((rule.action for rule in self.rules if rule.applies(text)), self.action)
        return self.repeat if repeated and self.repeat and action.drains else action

    def action_said(self, said: FaultAction) -> FaultAction:
        """Return what ends the fault, of which only a node has seen the text.

        Args:
            said: What the node says ends it. It counts where the table has it for some text or repetition.
        """
        known = (self.action, self.repeat, *(rule.action for rule in self.rules))
        return said if said in known else self.action


def fault_name(kind: FaultKind, code: str) -> str:
    """Return what a fault is called in names of files and in tags.

    Args:
        kind: Where it is seen.
        code: Its code.
    """
    return f"{kind.value}-{code}".lower()


def fault_named(name: str) -> Fault:
    """Return the row of a fault, with its own code.

    Args:
        name: What `fault_name` returns.

    Raises:
        ValueError: It is no fault's name.
    """
    kind, _, code = name.partition("-")
    code = next((row.code for row in FAULTS.values() if fault_name(row.kind, row.code) == name), code)
    return fault_of(FaultKind(kind), code)._replace(code=code)


def fault_of(kind: FaultKind, code: str) -> Fault:
    """Return the row of a fault; of one that has none, a row that asks to observe it.

    Args:
        kind: Where it is seen.
        code: The Xid, SXid or check.
    """
    row = FAULTS.get((kind, code)) or FAULTS.get((kind, "*"))
    return row or Fault(
        code, kind, FaultAction.OBSERVE, f"The table of faults has no row for {kind.value} {code}", ""
    )


def _registers(text: str) -> list[int]:
    found = re.search(r"\((0x[0-9a-fA-F]+(?:,? 0x[0-9a-fA-F]+)*)\)", text)
    return [int(value, 16) for value in re.split(r",? ", found[1])] if found else []


def _rule(row: Mapping[str, Any]) -> Rule:
    bits = tuple(row.get("only", row.get("bits", ())))
    return Rule(FaultAction(row["action"]), row.get("text", ""), row.get("register", 0), bits, "only" in row)


def _fault(row: Mapping[str, Any]) -> Fault:
    return Fault(
        row["code"],
        FaultKind(row["kind"]),
        FaultAction(row["action"]),
        row["meaning"],
        row["source"],
        FaultAction(row["repeat"]) if "repeat" in row else None,
        tuple(map(_rule, row.get("rules", ()))),
    )


def _read() -> dict[tuple[FaultKind, str], Fault]:
    rows = json.loads(Path(__file__).with_suffix(".json").read_text(encoding="utf-8"))
    return {(fault.kind, fault.code): fault for fault in map(_fault, rows)}


FAULTS: Mapping[tuple[FaultKind, str], Fault] = _read()
"""The rows of the table, by kind and code."""
