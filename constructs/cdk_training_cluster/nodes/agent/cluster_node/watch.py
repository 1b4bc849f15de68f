"""`cluster-node watch`: the node's watchdog, a service that turns what goes wrong into a drain file and a report."""

from __future__ import annotations

import argparse
import json
import os
import queue
import select
import signal
import socket
import sys
import threading
import time
from collections.abc import Callable
from datetime import datetime, timezone
from pathlib import Path

from cluster_contract.faults import FaultKind
from cluster_contract.health import NodeReport
from cluster_contract.node_files import FAULT_HISTORY, HEALTH, HEALTH_SOCKET
from cluster_contract.tags import FAULTS_TAG

from . import grace, health_service, progress, readings, reports, use
from .drain_files import names as drain_names
from .kernel_log import PATH as KERNEL_LOG
from .kernel_log import KernelLog, open_kernel_log, sighting
from .metadata import Metadata
from .node_facts import Facts, boot_id, expected_facts, instance_id, instance_type
from .notices import TERMINATING, Notice, Notices
from .programs import ROOT
from .watched import NodeIdentity, Watched

_URGENT_SECONDS = 5
_SCHEDULED_SECONDS = 300
_USE_SECONDS = 10
_DEVICE_SECONDS = 60
_MOST_DEVICE_SECONDS = 300
_STATE_SECONDS = 60
_PAUSE_SECONDS = 0.2
_MOST_SECONDS_BETWEEN_ATTEMPTS = 300
_URGENT = frozenset({"spot", "rebalance", "terminating", "standby"})
_SCHEDULED = frozenset({"maintenance"})


class DeviceReader(threading.Thread):
    """Reads the devices beside the watching, which never waits for one that is broken."""

    def __init__(self, sources: readings.Readings) -> None:
        """Read nothing yet.

        Args:
            sources: The node's devices.
        """
        super().__init__(daemon=True)
        self.facts: Facts = sources.facts
        self._sources = sources
        self._found: queue.SimpleQueue[readings.Found] = queue.SimpleQueue()
        self._last = time.monotonic()
        self._trouble = ""

    def run(self) -> None:
        """Read the devices once a minute."""
        while True:
            self.read()
            time.sleep(_DEVICE_SECONDS)

    def read(self) -> None:
        """Read the devices once."""
        try:
            found = self._sources.read()
        except (OSError, ValueError, KeyError) as error:
            found = readings.Found(frozenset(), [], {}, str(error))
        self._found.put(found)

    def take(self, watched: Watched) -> None:
        """Let the watchdog know what was read since the last time.

        Args:
            watched: What is known of the node.

        Raises:
            OSError: Not everything could be read, or nothing for minutes.
        """
        while not self._found.empty():
            found = self._found.get()
            self._last, self._trouble = time.monotonic(), found.trouble
            watched.serials = found.serials or watched.serials
            watched.checked(found.readable, found.wrong, found.evidence)
        if time.monotonic() > self._last + _MOST_DEVICE_SECONDS:
            raise OSError(f"there is no answer for {_MOST_DEVICE_SECONDS} seconds")
        if self._trouble:
            raise OSError(self._trouble)


class Watchdog:
    """Reads each source when its time has come, and writes down what is known."""

    def __init__(self, watched: Watched, devices: DeviceReader, notices: Notices) -> None:
        """Read nothing yet.

        Args:
            watched: What is known of the node.
            devices: What reads the node's devices.
            notices: What its metadata says.
        """
        self.watched: Watched = watched
        self.devices: DeviceReader = devices
        self.log: KernelLog | None = None
        self.unread: dict[str, str] = {}
        # The last whole state, for readers in other threads.
        self.state: dict[str, object] = watched.document()
        self._last: dict[str, float] = {}
        self._written = ""
        self._history = list(watched.history)
        self._jobs: list[tuple[str, Callable[[], float], Callable[[], None]]] = [
            ("metadata", lambda: _URGENT_SECONDS, lambda: watched.noticed(_URGENT, notices.urgent())),
            (
                "scheduled maintenance",
                lambda: _SCHEDULED_SECONDS,
                lambda: watched.noticed(_SCHEDULED, notices.scheduled(datetime.now(timezone.utc))),
            ),
            ("devices", lambda: _URGENT_SECONDS, lambda: devices.take(watched)),
            ("processes", lambda: _USE_SECONDS if drain_names() else _STATE_SECONDS, self._look_at_use),
        ]

    def turn(self, now: float) -> float:
        """Do what is due, and return the seconds until the next thing is.

        Args:
            now: Seconds that have passed.
        """
        if self.log is not None:
            for line in self.log.lines():
                found = sighting(line)
                # Any process may have the Neuron driver write any line, of other drivers too.
                if found is not None and (found.kind is FaultKind.NEURON) == bool(self.devices.facts.neuron_devices):
                    self.watched.saw(found)
        self.watched.look_at_files()
        for name, seconds, job in self._jobs:
            if now < self._last.get(name, float("-inf")) + seconds():
                continue
            self._last[name] = now
            try:
                job()
                self.unread.pop(name, None)
            except (OSError, ValueError, KeyError) as error:
                # What cannot be read is unknown: nothing of it begins or ends.
                self.unread[name] = str(error)
        self.unread.pop("disk", None)
        for write in (self._write_history, self._write_state):
            try:
                write(now)
            except OSError as error:
                self.unread["disk"] = str(error)
        return max(0.0, min(self._last[name] + seconds() for name, seconds, _ in self._jobs) - now)

    def _look_at_use(self) -> None:
        in_use, facts = use.jobs_use_node(), self.devices.facts
        self.watched.used(in_use)
        self.watched.shows_jobs = in_use is not None or bool(facts.gpus or facts.neuron_devices)

    def _write_history(self, _: float) -> None:
        history = list(self.watched.history)
        if history != self._history:
            progress.write(Path(ROOT + FAULT_HISTORY), {"faults": history})
            self._history = history

    def _write_state(self, now: float) -> None:
        self.state = document = {**self.watched.document(), "unread": self.unread}
        content = json.dumps({**document, "at": None})
        # The number of the last line alone is no news: a line that matters changes more.
        if content == self._written and now < self._last["state"] + _STATE_SECONDS:
            return
        progress.write(Path(ROOT + HEALTH), {**document, "kernel_line": self.log.last if self.log else -1})
        self._written, self._last["state"] = content, now


class Outbox(threading.Thread):
    """Sends reports and lets the node go, beside the watching, which never waits for the network."""

    def __init__(self, watched: Watched, region: str) -> None:
        """Send nothing yet.

        Args:
            watched: What is known of the node.
            region: Its region.
        """
        super().__init__(daemon=True)
        self._watched, self._region = watched, region
        self._went: Notice | None = None

    def run(self) -> None:
        """Send what waits, again and again; after a failure less often."""
        seconds: float = _URGENT_SECONDS
        while True:
            time.sleep(seconds)
            try:
                done = self.turn()
            except (OSError, ValueError, KeyError) as error:
                sys.stderr.write(f"cluster-node watch: reports could not be sent and are kept: {error!r}\n")
                done = False
            seconds = _URGENT_SECONDS if done else min(seconds * 2, _MOST_SECONDS_BETWEEN_ATTEMPTS)

    def turn(self) -> bool:
        """Do what there is to do, and say whether all of it was done."""
        # Before the report: the function does nothing to a node whose own tag does not say the same.
        claimed, claim = self._watched.claimed, self._watched.claim
        if claim != claimed and reports.tag(self._region, self._watched.node.instance_id, FAULTS_TAG, claim):
            self._watched.claimed = claimed = claim
        sent = reports.send(self._region) and claim == claimed
        notice = self._watched.notices.get(TERMINATING) if self._watched.may_go else None
        # A node that went to its warm pool is terminated there, with another notice.
        if notice != self._went and (notice is None or grace.let_go(self._region, self._watched.node.instance_id)):
            self._went = notice
        # Auto Scaling may not have got round to its hook yet, which would cost minutes of the node.
        return sent or notice != self._went


def main(arguments: list[str]) -> int:
    """Watch the node until the service is stopped."""
    argparse.ArgumentParser(
        prog="cluster-node watch",
        description="Watch this node, as its service does: kernel log, accelerators, Elastic Fabric Adapters and "
        f"instance metadata. What is known now is in {HEALTH}.",
    ).parse_args(arguments)
    watchdog, outbox = make_watchdog()
    outbox.start()
    watchdog.devices.start()
    health_service.serve(Path(ROOT + HEALTH_SOCKET), lambda: watchdog.state)
    # systemd ends a service by this signal, and what is known is on disk.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    poll = select.poll()
    if watchdog.log is not None:
        poll.register(watchdog.log, select.POLLIN)
    _tell_systemd("READY=1")
    while True:
        seconds = watchdog.turn(time.monotonic())
        _tell_systemd("WATCHDOG=1")
        poll.poll(seconds * 1000)
        # A kernel that writes much is read in portions.
        time.sleep(_PAUSE_SECONDS)


def make_watchdog() -> tuple[Watchdog, Outbox]:
    """Return the watchdog of this node, which knows what the last one knew, and what sends its reports."""
    facts, metadata = expected_facts(instance_type()), Metadata()
    node = NodeIdentity(
        facts.cluster, facts.node_group, instance_id() or metadata.get("instance-id") or "", boot_id()
    )
    watched = Watched(node, report=_spool)
    known = progress.read(Path(ROOT + HEALTH))
    watched.restore(known, progress.read(Path(ROOT + FAULT_HISTORY)).get("faults", []))
    same_boot = known.get("boot_id") == node.boot_id
    watchdog = Watchdog(watched, DeviceReader(readings.Readings(facts)), Notices(metadata))
    try:
        watchdog.log = open_kernel_log(after=known["kernel_line"] if same_boot else -1, path=ROOT + KERNEL_LOG)
    except OSError as error:
        watchdog.unread["kernel log"] = str(error)
    return watchdog, Outbox(watched, facts.region)


def _spool(report: NodeReport) -> None:
    """Keep a report; where nothing can be written, the drain file alone says what was seen."""
    try:
        reports.spool(report)
    except OSError as error:
        sys.stderr.write(f"cluster-node watch: a report of {report.kind.value} is lost: {error}\n")


def _tell_systemd(state: str) -> None:
    """Tell systemd what it waits for: https://www.freedesktop.org/software/systemd/man/latest/sd_notify.html."""
    address = os.environ.get("NOTIFY_SOCKET")
    if address:
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as notify:
            notify.connect(f"\0{address[1:]}" if address.startswith("@") else address)
            notify.sendall(state.encode())
