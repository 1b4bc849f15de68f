"""What reports a run once a minute, and notices when it hangs or is slow: a thread beside the training."""

import math
import re
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import asdict
from statistics import fmean
from typing import SupportsFloat

from cluster_job.causes import RankFacts, likely_cause
from cluster_job.environment import Environment
from cluster_job.exchange import Exchange
from cluster_job.hang_watch import HangProbe, HangWatch, say
from cluster_job.hangs import longest_step
from cluster_job.ledger import Ledger, Period, Totals
from cluster_job.measuring import Recent, Stopwatch
from cluster_job.metrics import HEARTBEAT_SECONDS, WATCHED, Report, RunMetric, Sink, peak_flops
from cluster_job.readings import EfaCounters, Gpu
from cluster_job.records import Records, decoded, encoded
from cluster_job.stragglers import LocalTimes, slow_ranks
from cluster_job.stuck_watch import HangSettings, StuckWatch
from cluster_job.utilization import GpuUse, is_known, low_utilization
from cluster_job.work import Place, Steps, Work

REPORT_EVERY = 60.0
LOOK_EVERY = 15.0
_START_SECONDS = 1800.0
"""For how long a process may set up before its first step, as far as the heartbeat goes."""

_SAVING_SECONDS = 600.0
"""For how long a checkpoint may take until a rank that writes it may be stuck."""

_SLOWEST = 5
_INSTANCE = re.compile(r"i-[0-9a-f]{8,17}")


class Reporter:
    """Reports a run: each rank says what it measured, and rank 0 the metrics.

    What the script calls takes microseconds and fails for nothing that lies outside the script.
    """

    def __init__(
        self,
        work: Work,
        environment: Environment,
        sink: Sink,
        *,
        records: Records | None,
        node: HangProbe | None = None,
        hangs: HangSettings | None = None,
    ) -> None:
        self._work, self._environment, self._sink, self._records = work, environment, sink, records
        self._node = node or HangProbe()
        self._place = Place(rank=environment.rank, world_size=environment.world_size, nodes=environment.nodes)
        items, hangs = None if records is None else records.run, hangs or HangSettings()
        self._watch, self._hangs = Stopwatch(), HangWatch(work.name, environment, self._node, items)
        self._stuck = StuckWatch(work.name, environment, self._node, items, hangs)
        self._look_seconds = min(hangs.look_seconds, LOOK_EVERY)
        self._exchange = Exchange(records)
        self._local, self._recent, self._steps = LocalTimes(), Recent(), Steps()
        self._failed: set[str] = set()
        self._alive = self._reported = self._node.now()
        self._says_alive = False
        self._looked, self._saves_since = self._alive, math.inf
        self._hang: Mapping[str, object] | None = None
        self._ledger = Ledger(self._alive, self._before())
        self._beaten = 0.0
        self._wants_loss = True
        self._failed_checkpoints: float | None = None  # none was tried
        self._has_refused = False
        self._gpus: Sequence[Gpu] = ()
        self._use = GpuUse()
        self._efa: EfaCounters | None = None
        self._lock, self._ended = threading.Lock(), threading.Event()
        self._thread = threading.Thread(target=self._loop, name="cluster-job-reporter", daemon=True)

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    def begin(self, step: int) -> None:
        """Start a step."""
        self._watch.begin(step)

    def computing(self) -> AbstractContextManager[None]:
        """Time the rank's own work of a step, until it exchanges something with others."""
        return self._watch.computing()

    def alive(self) -> None:
        """Say that the process is at work though it does no step, such as in a long evaluation."""
        self._alive, self._says_alive = self._node.now(), True

    def done(
        self, step: int, *, loss: SupportsFloat | None, samples: int, share: int, place: Place | None = None
    ) -> None:
        """Count a finished step.

        Args:
            step: Its number.
            loss: Its loss on this rank, as anything that `float` takes; it is asked for once a minute only, since a
                GPU is waited for then. None: it is not known.
            samples: How many samples this rank took.
            share: How many were its share of the global batch.
            place: This process's place in the step. Default: - that of the step before it.
        """
        seconds = self._watch.end(step)
        for times in self._watch.finished():
            self._recent.add(times)
            self._local.add(times.step, times.data + times.compute)
        value = None
        if self._wants_loss and loss is not None:
            self._wants_loss = False
            value = float(getattr(loss, "detach", lambda: loss)())  # torch warns of what has a gradient
        self._stuck.add(seconds)
        with self._lock:
            self._alive, self._says_alive = self._node.now(), False
            self._ledger.step_done(self._alive, step, seconds)
            self._place = place or self._place
            self._steps.last = step
            self._steps.samples += samples
            self._steps.share += share
            self._steps.loss = self._steps.loss if value is None else value

    @contextmanager
    def saving(self) -> Iterator[None]:
        """Say that the process writes a checkpoint inside: for 10 minutes that is no hang."""
        self._saves_since = self._node.now()
        try:
            yield
        finally:
            self._saves_since = math.inf

    def saved(self, is_whole: bool) -> None:
        """Count a checkpoint.

        Args:
            is_whole: Whether it could be written.
        """
        self._failed_checkpoints = 0.0 if is_whole else (self._failed_checkpoints or 0.0) + 1

    def refused(self) -> None:
        """Remember for the next report that no checkpoint was written because a rank's loss is no finite number."""
        self._has_refused = True

    def stop(self) -> None:
        """End the thread; the last report is not sent."""
        self._ended.set()

    def finish(self, *, complete: bool) -> None:
        """Send the last report, and end the thread.

        Args:
            complete: Whether the run has done its last step: what follows is no lost time.
        """
        self.stop()
        if self._thread.is_alive():
            self._thread.join(timeout=LOOK_EVERY)
        self._attempt("the last report", lambda: self._report(self._node.now(), complete=complete))

    def look(self) -> None:
        """Do what is due: look for a hang, report, send a heartbeat."""
        now = self._looked = self._node.now()
        self._attempt("the look for a hang", lambda: self._look_for_hang(now))
        if self._environment.local_rank == 0:
            self._attempt("reading the GPUs", lambda: self._read_gpus(now))
        if now - self._reported >= REPORT_EVERY:
            self._reported = now
            self._attempt("the report", lambda: self._report(now))
        if self._environment.local_rank == 0 and now - self._beaten >= HEARTBEAT_SECONDS and self._is_at_work(now):
            self._beaten = now
            self._attempt("the heartbeat", self._beat)

    def _loop(self) -> None:
        while not self._ended.wait(self._look_seconds):
            self.look_for_stuck_ranks()
            if self._node.now() - self._looked >= LOOK_EVERY:
                self.look()

    def look_for_stuck_ranks(self) -> None:
        """Say where this process stands if its step is overdue, and report the ranks that the others wait for."""
        self._attempt("the look for ranks that are stuck", self._look_for_stuck_ranks)

    def _look_for_stuck_ranks(self) -> None:
        now, place, step = self._node.now(), self._place, self._steps.last
        is_saving = 0 <= now - self._saves_since < _SAVING_SECONDS
        found = self._stuck.look(
            now - self._alive,
            step=-1 if step is None else step,
            at_work=self._says_alive or is_saving,
            rank=place.rank,
            world_size=place.world_size,
        )
        if found is not None:
            self._hang = {"at": round(now, 3), "sentence": found.sentence}
            self._report(now)

    def _attempt(self, what: str, act: Callable[[], object]) -> None:
        """Do something that must never end the training; say once for each kind of error that it failed."""
        try:
            act()
        except Exception as error:
            kind = f"{what} {type(error).__name__}"
            if kind not in self._failed:
                self._failed.add(kind)
                say(f"{what} of run {self._work.name} failed, and training goes on: {error}")

    def _look_for_hang(self, now: float) -> None:
        place = self._place
        self._hangs.look(
            now - self._alive,
            self._usual,
            at_work=self._says_alive,
            rank=place.rank,
            world_size=place.world_size,
        )

    def _read_gpus(self, now: float) -> None:
        self._gpus = self._node.gpus()
        with self._lock:
            is_training = self._ledger.is_training(now)
        if is_training:
            self._use.add(self._gpus)

    @property
    def _usual(self) -> float | None:
        with self._lock:
            return self._ledger.step_seconds

    @property
    def _usd_per_hour(self) -> float | None:
        cluster = self._environment.cluster
        if cluster is None or cluster.node_hour_usd is None:
            return None
        return cluster.node_hour_usd * self._place.nodes

    def _before(self) -> Totals | None:
        """Return what an earlier process of the run remembered."""
        found: list[Totals] = []

        def read() -> None:
            report = None if self._records is None else self._records.reports.read(self._work.name)
            if report is not None:
                before = decoded(report.value)
                self._hang = before.get("hang")
                found.append(Totals(**before["totals"]))

        if self._environment.rank == 0:
            self._attempt("reading what was known", read)
        return found[0] if found else None

    def _is_at_work(self, now: float) -> bool:
        """Say whether the idle stop is to leave the node alone: a job that hangs is not kept."""
        usual = self._usual
        return now - self._alive < (_START_SECONDS if usual is None else longest_step(usual))

    def _beat(self) -> None:
        instance = self._node.instance_id()
        if instance is not None and _INSTANCE.fullmatch(instance):
            self._sink.beat(instance)

    def _report(self, now: float, *, complete: bool | None = None) -> None:
        with self._lock:
            steps, self._steps = self._steps, Steps(last=self._steps.last, loss=self._steps.loss)
            place = self._place
            period = self._ledger.close_period(now, usd_per_hour=self._usd_per_hour)
            if complete is not None:
                self._ledger.finish(complete=complete)
        facts = self._facts(place)
        if facts is not None:
            self._exchange.give(now, place.world_size, facts, self._local.windows)
        if place.rank != 0:
            return
        own = {} if facts is None else {0: (facts, self._local.windows)}
        ranks = {**self._exchange.take(now, place.world_size), **own}
        measured = [each for each, _ in ranks.values()]
        slow = slow_ranks({rank: windows for rank, (_, windows) in ranks.items()}, place.world_size)
        use = self._utilization(now, measured, place)
        low = low_utilization(*use)
        cause = likely_cause(measured, slow, is_low=low is not None)
        found = {
            RunMetric.SLOW_RANKS: float(len(slow)),
            RunMetric.GPU_UTILIZATION: use[0],
            RunMetric.LOW_UTILIZATION: float(low is not None) if is_known(*use) else None,
        }
        values = {**self._values(now, place, period, steps), **found}
        report = Report(
            run=self._work.name,
            at=now,
            step=steps.last,
            values={metric: value for metric, value in values.items() if value is not None},
            watched=WATCHED if period.is_whole_hour else WATCHED - {RunMetric.GOODPUT},
            fields={
                "nodes": place.nodes,
                "world_size": place.world_size,
                "slowest_ranks": [[one.rank, round(one.factor, 3)] for one in slow[:_SLOWEST]],
                "low_utilization": low,
                "hang": self._hang,
                "likely_cause": None if cause is None else {"kind": cause.kind.value, "sentence": cause.sentence},
            },
        )
        self._wants_loss = True
        self._attempt("the run's record", lambda: self._remember(report))
        self._sink.send(report)

    def _remember(self, report: Report) -> None:
        if self._records is not None:
            item = {
                "totals": asdict(self._ledger.totals),
                "cost_cap_usd": self._work.cost_cap_usd,
                **report.values_by_name(),
                **report.fields,
            }
            self._records.reports.put(self._work.name, encoded(item))

    def _facts(self, place: Place) -> RankFacts | None:
        """Return what this rank measured. None: no step is done, or its node's first rank says all there is."""
        is_first = self._environment.local_rank == 0
        again = None
        if is_first:
            self._gpus = self._gpus or self._node.gpus()  # a short run ends before the first look
            before, self._efa = self._efa, self._node.efa()
            again = None if before is None or self._efa is None else self._efa.retransmitted_since(before)
        data, compute, step = self._recent.data_seconds, self._recent.compute_seconds, self._usual
        if step is None or (data is None and not is_first):
            return None
        return RankFacts(
            rank=place.rank,
            node=self._environment.node,
            step_seconds=step,
            data_seconds=data,
            compute_seconds=compute,
            throttled_gpus=tuple(gpu.index for gpu in self._gpus if gpu.is_throttled),
            retransmitted_share=again,
            gpu_percent=self._use.percent,
        )

    def _utilization(self, now: float, facts: Sequence[RankFacts], place: Place) -> tuple[float | None, float | None]:
        """Return the average utilization of the run's GPUs, and the MFU of its median step, in percent."""
        usual = self._usual
        if not usual or not self._ledger.is_training(now):
            return None, None
        percents = [one.gpu_percent for one in facts if one.gpu_percent is not None]
        return fmean(percents) if percents else None, self._mfu(self._work.global_batch / usual, place)

    def _mfu(self, rate: float, place: Place) -> float | None:
        peak = peak_flops(self._gpus[0].name) if self._gpus else None
        if self._work.flops_per_sample is None or peak is None:
            return None
        return 100 * self._work.flops_per_sample * rate / (peak * place.world_size)

    def _values(self, now: float, place: Place, period: Period, steps: Steps) -> Mapping[RunMetric, float | None]:
        refused, self._has_refused = self._has_refused, False
        is_known = refused or steps.loss is not None
        cost, cap = self._ledger.totals.cost_usd, self._work.cost_cap_usd
        rate = None
        if period.seconds > 0 and steps.share:
            # Shares of ranks may differ by a sample: what this one took counts beside its own share.
            rate = self._work.global_batch * period.steps * (steps.samples / steps.share) / period.seconds
        return {
            RunMetric.LOSS: steps.loss,
            RunMetric.SAMPLES_PER_SECOND: rate,
            RunMetric.STEP_SECONDS: period.step_seconds,
            RunMetric.MFU: None if rate is None else self._mfu(rate, place),
            RunMetric.GOODPUT: 100 * period.goodput,
            RunMetric.LOST_SECONDS: period.lost_seconds,
            RunMetric.COST: cost,
            RunMetric.COST_SHARE: 100 * cost / cap if cost is not None and cap is not None else None,
            RunMetric.SECONDS_WITHOUT_STEP: now - self._alive,
            RunMetric.CHECKPOINT_FAILURES: self._failed_checkpoints,
            RunMetric.NON_FINITE_LOSS: float(refused or not math.isfinite(steps.loss or 0)) if is_known else None,
        }
