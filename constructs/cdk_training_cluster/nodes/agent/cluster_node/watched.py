"""What the watchdog knows of the node: the faults it has seen, what is about to happen to it, and what follows."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from datetime import datetime, timedelta, timezone
from typing import Any, NamedTuple

from cluster_contract.claims import faults_value
from cluster_contract.faults import FaultAction, FaultKind, fault_name, fault_of
from cluster_contract.health import NodeReport, ReportedFault, ReportKind
from cluster_contract.times import parse_time, time_text

from . import drain_files
from .checking import WAITS_FOR_THE_JOB
from .evidence import Evidence
from .kernel_log import Sighting
from .notices import STANDBY, TERMINATING, Notice

REPEATS_WITHIN = timedelta(hours=24)
"""How long a fault before the last reboot counts, for those that end otherwise the second time."""

# A reading that is wrong once is no fault, and one that is right again for some minutes is none any more.
_READINGS_TO_BE_A_FAULT = 2
_READINGS_TO_BE_OVER = 5
_READINGS_TO_BE_UNUSED = 2
_WEIGHT = {action: weight for weight, action in enumerate(("application", "observe", "reboot", "replace"))}
_NAMES = {FaultKind.XID: "Xid", FaultKind.SXID: "SXid", FaultKind.NEURON: "Neuron's", FaultKind.CHECK: "Check"}

Key = tuple[FaultKind, str, str]


class NodeIdentity(NamedTuple):
    """The identity of the node.

    Attributes:
        cluster: The cluster's name.
        node_group: The node group's name.
        instance_id: Its instance.
        boot_id: What is another one after each boot.
    """

    cluster: str
    node_group: str
    instance_id: str
    boot_id: str


class Seen(NamedTuple):
    """A fault that was seen since the last boot.

    Attributes:
        action: What ends it.
        times: How often it was seen.
        sentence: What it is, for operators.
        last: When it was seen last.
        asks: What the fault table asks for. A line of the kernel's log gets another node only with its evidence.
    """

    action: FaultAction
    times: int
    sentence: str
    last: str
    asks: FaultAction


class Watched:
    """What is known of the node. Each thing that is new is reported once, and drains the node if it has to."""

    def __init__(
        self,
        node: NodeIdentity,
        *,
        report: Callable[[NodeReport], None],
        clock: Callable[[], datetime] = lambda: datetime.now(timezone.utc),
    ) -> None:
        """Know of nothing yet.

        Args:
            node: The node.
            report: What takes a report.
            clock: The time. Default: - the machine's.
        """
        self.node = node
        self.faults: dict[Key, Seen] = {}
        self.history: list[dict[str, str]] = []
        self.notices: dict[str, Notice] = {}
        self.serials: dict[str, str] = {}
        self.in_use: bool | None = None
        self.shows_jobs = True
        # What the node's own tag says, as far as that is known.
        self.claimed: str = ""
        self._report, self._clock = report, clock
        self._evidence = Evidence()
        self._readings: dict[Key, int] = {}
        self._dismissed: set[str] = set()
        self._told_drained = False
        self._unused = 0

    # What comes in.

    def saw(self, sighting: Sighting) -> None:
        """Take a fault of the kernel's log.

        Args:
            sighting: The fault.
        """
        device = sighting.device or self._fallen_already(sighting)
        self._add((sighting.kind, sighting.code, device), sighting.text)

    def checked(
        self,
        readable: Collection[str],
        found: Iterable[tuple[str, str, str]],
        evidence: Evidence = Evidence(),  # noqa: B008 - a constant
    ) -> None:
        """Take a reading of the node's own checks.

        Args:
            readable: The checks that could be made: of the others, nothing new is known.
            found: Code, device and text of what is wrong.
            evidence: What the drivers say of the devices. Default: - they cannot be asked.
        """
        self._evidence = evidence
        for key, seen in list(self.faults.items()):
            if seen.action is not seen.asks and self._action(key, seen.asks) is seen.asks:
                self.faults[key] = seen._replace(action=seen.asks)
                self._act(key)
        every = {(FaultKind.CHECK, code, device): text for code, device, text in found}
        wrong = {key: text for key, text in every.items() if not self._waits(key)}
        for key, text in wrong.items():
            self._readings[key] = max(self._readings.get(key, 0), 0) + 1
            if self._readings[key] >= _READINGS_TO_BE_A_FAULT:
                self._add(key, text)
        for key in [key for key in self._readings if key not in wrong and key[1] in readable]:
            self._readings[key] = min(self._readings[key], 0) - 1
            if key not in self.faults or self._readings[key] <= -_READINGS_TO_BE_OVER:
                del self._readings[key]
                if not self._has_returned(key):
                    self._end([key])

    def noticed(self, codes: Collection[str], found: Sequence[Notice]) -> None:
        """Take what the metadata says now.

        Args:
            codes: The codes of notices that were asked for.
            found: Those that there are.
        """
        now = {notice.code: notice for notice in found}
        # Of maintenance, the next that is scheduled may be far away.
        over = [
            notice
            for code, notice in self.notices.items()
            if code in codes and (code not in now or (notice.drains and not now[code].drains))
        ]
        for code, notice in now.items():
            before = self.notices.get(code)
            self.notices[code] = notice
            if notice.drains and code not in self._dismissed and (before is None or not before.drains):
                drain_files.add(code, notice.sentence, code=code, action="observe", deadline=notice.deadline)
            if before is None or before.deadline != notice.deadline:
                self._tell(ReportKind.NOTICE, deadline=notice.deadline, sentence=notice.sentence)
        for notice in over:
            if notice.code not in now:
                del self.notices[notice.code]
            self._dismissed.discard(notice.code)
            drain_files.remove(notice.code)
        if any(notice.drains for notice in over) and not self._has_draining_faults:
            self._tell(
                ReportKind.RECOVERED, sentence=f"no longer so: {'; '.join(notice.sentence for notice in over)}"
            )

    def used(self, in_use: bool | None) -> None:
        """Take whether jobs use the node. None: that is not known, which is not the same as no.

        Args:
            in_use: Whether they do.
        """
        self.in_use = in_use
        # A job that starts its processes again uses nothing for a moment.
        self._unused = self._unused + 1 if in_use is False else 0
        drained = bool(drain_files.names()) and self._is_unused
        if drained and not self._told_drained:
            self._tell(ReportKind.DRAINED)
        self._told_drained = drained

    def look_at_files(self) -> None:
        """Forget what an operator has removed the file of; it counts again when it is seen again."""
        names = set(drain_files.names())
        removed = [key for key, seen in self.faults.items() if seen.action.drains and _file(key) not in names]
        self._dismissed |= {code for code, notice in self.notices.items() if notice.drains and code not in names}
        self._end(removed)

    # What follows.

    @property
    def may_go(self) -> bool:
        """Whether Auto Scaling need not wait for a job of this node; where none can be seen, waiting helps none."""
        return TERMINATING in self.notices and (self._is_unused or not self.shows_jobs)

    @property
    def claim(self) -> str:
        """What the node's own tag is to say. Empty: nothing, as long as nothing is to be done to the node."""
        heaviest = sorted(self.faults.items(), key=lambda item: -_WEIGHT[item[1].action.value])
        faults = dict.fromkeys(_file(key) for key, seen in heaviest if seen.action.drains)
        is_held = STANDBY in self.notices or drain_files.VERIFICATION in drain_files.names()
        if not faults and not is_held and not self.claimed:
            return ""
        return faults_value(self.node.boot_id, faults, drained=self._told_drained)

    def document(self) -> dict[str, Any]:
        """Return the state for readers on the node; `restore` takes it again."""
        drained_by = drain_files.names()
        return {
            "at": self._now(),
            "boot_id": self.node.boot_id,
            "faults": [
                {"kind": kind.value, "code": code, "device": device, **seen._asdict()}
                for (kind, code, device), seen in self.faults.items()
            ],
            "notices": [
                {**notice._asdict(), "deadline": notice.deadline and time_text(notice.deadline)}
                for notice in self.notices.values()
            ],
            "dismissed": sorted(self._dismissed),
            "in_use": self.in_use,
            "told_drained": self._told_drained,
            "claimed": self.claimed,
            "serials": self.serials,
            # Up to 0.5, NVIDIA's Resiliency Extension calls a node healthy by the first, since 0.7 by the second.
            "fail_count": len(drained_by),
            "failed_checks": drained_by,
        }

    def restore(self, document: dict[str, Any], history: list[dict[str, str]]) -> None:
        """Know again what was known before the watchdog was started again.

        Args:
            document: The last `document`; one of an earlier boot counts for nothing.
            history: The faults of earlier boots.
        """
        self.history = history
        self.claimed = str(document.get("claimed", ""))
        if document.get("boot_id") != self.node.boot_id:
            return
        self.serials = dict(document["serials"])
        self._told_drained = document["told_drained"]
        self.notices = {
            entry["code"]: Notice(**{**entry, "deadline": entry["deadline"] and parse_time(entry["deadline"])})
            for entry in document["notices"]
        }
        self._dismissed = set(document["dismissed"])
        for entry in document["faults"]:
            key = (FaultKind(entry["kind"]), entry["code"], entry["device"])
            action = FaultAction(entry["action"])
            asks = FaultAction(entry.get("asks", action))
            self.faults[key] = Seen(action, entry["times"], entry["sentence"], entry["last"], asks)
            if key[0] is FaultKind.CHECK:
                self._readings[key] = _READINGS_TO_BE_A_FAULT

    @property
    def _has_draining_faults(self) -> bool:
        return any(seen.action.drains for seen in self.faults.values())

    @property
    def _is_unused(self) -> bool:
        return self._unused >= _READINGS_TO_BE_UNUSED

    def _waits(self, key: Key) -> bool:
        return key[1] == WAITS_FOR_THE_JOB and not self._is_unused and key not in self.faults

    def _has_returned(self, key: Key) -> bool:
        """Say whether a check drained the node in this boot, was over, and came back: only its reboot ends it."""
        now, oldest = self._entry(key), time_text(self._clock() - REPEATS_WITHIN)
        same = ("boot_id", "kind", "code", "device")
        drained = [
            entry
            for entry in self.history
            if entry["at"] >= oldest and all(entry[name] == now[name] for name in same)
        ]
        return key in self.faults and len(drained) > 1

    def _add(self, key: Key, text: str) -> None:
        kind, code, device = key
        fault = fault_of(kind, code)
        asks = fault.action_for(text, repeated=self._is_repeated(key))
        before = self.faults.get(key)
        if before and _WEIGHT[before.asks.value] >= _WEIGHT[asks.value]:
            self.faults[key] = before._replace(times=before.times + 1, last=self._now())
            return
        where = f" of {device}" if device else ""
        sentence = f"{_NAMES[kind]} {code}{where}: {fault.meaning}"
        times = before.times + 1 if before else 1
        self.faults[key] = Seen(self._action(key, asks), times, sentence, self._now(), asks)
        self._act(key)

    def _action(self, key: Key, asks: FaultAction) -> FaultAction:
        """Return what a fault gets: a line of the kernel's log without evidence gets no more than a reboot."""
        kind, _, device = key
        sure = kind is FaultKind.CHECK or asks is not FaultAction.REPLACE or self._evidence.confirms(kind, device)
        return asks if sure else FaultAction.REBOOT

    def _act(self, key: Key) -> None:
        seen = self.faults[key]
        if seen.action.drains:
            unsure = "" if seen.action is seen.asks else f"; {seen.asks.value} is not confirmed"
            sentence = f"{seen.sentence} ({seen.action.value}{unsure})"
            drain_files.add(_file(key), sentence, code=key[1], action=seen.action.value)
            self.history.append(self._entry(key))
        self._tell(ReportKind.FAULT)

    def _end(self, keys: Sequence[Key]) -> None:
        ended = [self.faults.pop(key) for key in keys if key in self.faults]
        for key in keys:
            if not any(_file(other) == _file(key) for other in self.faults):
                drain_files.remove(_file(key))
        if any(seen.action.drains for seen in ended) and not self._has_draining_faults:
            self._tell(ReportKind.RECOVERED, sentence="; ".join(seen.sentence for seen in ended))

    def _is_repeated(self, key: Key) -> bool:
        now, oldest = self._entry(key), time_text(self._clock() - REPEATS_WITHIN)
        self.history = [entry for entry in self.history if entry["at"] >= oldest]
        return any(
            entry["boot_id"] != now["boot_id"]
            and (entry["kind"], entry["code"]) == (now["kind"], now["code"])
            # A node that was stopped may have other GPUs at the same address.
            and (
                entry["serial"] == now["serial"]
                if entry["serial"] and now["serial"]
                else entry["device"] == now["device"]
            )
            for entry in self.history
        )

    def _entry(self, key: Key) -> dict[str, str]:
        kind, code, device = key
        serial = self.serials.get(device, "")
        seen = {"kind": kind.value, "code": code, "device": device, "serial": serial}
        sentence = drain_files.sentence_of(_file(key))
        return {**seen, "boot_id": self.node.boot_id, "at": self._now(), "sentence": sentence}

    def _fallen_already(self, sighting: Sighting) -> str:
        # The line that names no device follows one that does.
        same = [device for kind, code, device in self.faults if (kind, code) == (sighting.kind, sighting.code)]
        return same[-1] if same else ""

    def _tell(self, kind: ReportKind, *, deadline: datetime | None = None, sentence: str = "") -> None:
        heaviest = sorted(self.faults.items(), key=lambda item: -_WEIGHT[item[1].action.value])
        self._report(
            NodeReport(
                **self.node._asdict(),
                kind=kind,
                at=self._clock(),
                faults=tuple(
                    ReportedFault(
                        code, kind, seen.action, device, seen.times, seen.sentence, self.serials.get(device, "")
                    )
                    for (kind, code, device), seen in heaviest[:20]
                ),
                serials=tuple(self.serials.values()),
                deadline=deadline,
                sentence=sentence,
            )
        )

    def _now(self) -> str:
        return time_text(self._clock())


def _file(key: Key) -> str:
    kind, code, _ = key
    return fault_name(kind, code)
