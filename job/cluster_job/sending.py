"""Where a process's reports go: to CloudWatch and the runs' table of its cluster, or to standard output alone."""

import math
import os
import re
import time
import urllib.request
from importlib.util import find_spec
from pathlib import Path

from cluster_job.environment import Environment
from cluster_job.fencing import Token
from cluster_job.hang_watch import HangProbe, say
from cluster_job.heartbeat import take_over
from cluster_job.holding import Hold
from cluster_job.lease import HELD, TOKEN, Lease, LeaseView, owner_of
from cluster_job.metrics import CloudWatch, Lines, Report, RunMetric
from cluster_job.records import REPORTS, Records
from cluster_job.reporter import Reporter
from cluster_job.stuck_watch import HangSettings
from cluster_job.table import KEPT_REPORT_SECONDS, open_table
from cluster_job.work import Work

_METADATA = "http://169.254.169.254/latest"
_BOARD = Path("/sys/devices/virtual/dmi/id/board_asset_tag")
_SECONDS = 2.0

_HOLDS: dict[str, Hold] = {}
"""By the run's name: a script may make several objects of one run, and they are one start."""


def make_reporter(work: Work, environment: Environment, *, is_alone: bool = True) -> Reporter:
    """Return what reports a run of this process.

    Args:
        work: What the run does.
        environment: The process's cluster and place.
        is_alone: Whether all ranks wait for each one. Default: - they do, unlike replicas.
    """
    cluster, sink = environment.cluster, _cloudwatch(environment)
    if cluster is None or sink is None:
        return Reporter(work, environment, Lines(), records=None)
    if environment.local_rank == 0:
        take_over()
    records = None
    if cluster.runs_table:
        table, region = cluster.runs_table, cluster.region
        own = open_table(table, work.name, region=region)
        reports = open_table(table, REPORTS, region=region, kept_seconds=KEPT_REPORT_SECONDS)
        records = Records(run=own, reports=reports)
    node = HangProbe(instance_id=lambda: _instance_of(environment))
    hangs = HangSettings.of(os.environ, environment) if is_alone else HangSettings(grace=0)
    return Reporter(work, environment, sink, records=records, node=node, hangs=hangs)


def make_hold(run: str, environment: Environment, *, is_alone: bool) -> Hold:
    """Return this process's part in the lease of a run.

    Args:
        run: The run's name.
        environment: The process's cluster and place.
        is_alone: Whether no other job trains the run, as replicas do.
    """
    held = _HOLDS.get(run)
    if held is not None and not held.has_ended:
        return held
    cluster, is_first = environment.cluster, environment.rank == 0
    given = os.environ.get(TOKEN) if is_alone and os.environ.get(HELD) == run else None
    owner = owner_of(run)
    if not is_alone or owner is None or cluster is None or not cluster.runs_table or not _has_boto3():
        return Hold(None, is_first=is_first, given=None if given is None else Token.parse(given))
    table = open_table(cluster.runs_table, run, region=cluster.region)
    _HOLDS[run] = Hold(Lease(table, run=run, owner=owner, node=environment.node), is_first=is_first)
    return _HOLDS[run]


class Heartbeat:
    """What `cluster-run` sends for a script that reports nothing itself.

    Args:
        environment: The process's cluster and place.
    """

    def __init__(self, environment: Environment) -> None:
        self._environment = environment
        self._view: LeaseView | None = None

    def send(self, silent: float | None = None) -> None:
        """Publish the metric that says that a job is at work on this instance; outside a cluster send nothing.

        Args:
            silent: For how many seconds the run has had no process here. Where no other node has renewed its lease
                since the heartbeat before, that is reported as time without a step, since no process does. Default: -
                it has one, or never had one.
        """
        environment, cluster = self._environment, self._environment.cluster
        sink, instance = _cloudwatch(environment), _instance_of(environment)
        if sink is not None and instance is not None:
            sink.beat(instance)
        if sink is None or cluster is None or not cluster.runs_table:
            return
        if self._view is None:
            table = open_table(cluster.runs_table, environment.run, region=cluster.region)
            self._view = LeaseView(table, longest_gap=math.inf)
        is_trained = self._view.is_trained()
        if silent is not None and not is_trained:
            values = {RunMetric.SECONDS_WITHOUT_STEP: silent}
            sink.send(Report(run=environment.run, at=time.time(), step=None, values=values, fields={"processes": 0}))


def _cloudwatch(environment: Environment) -> CloudWatch | None:
    """Return CloudWatch. None: the process has no cluster, or no boto3."""
    cluster = environment.cluster
    if cluster is None:
        return None
    try:
        import boto3  # noqa: PLC0415 - a job without a cluster needs none
        from botocore.config import Config  # noqa: PLC0415
    except ImportError:
        if environment.rank == 0:
            say(
                "boto3 is not installed, so that metrics go to standard output only: "
                "pip install 'cdk-training-cluster-job[torchrun]'"
            )
        return None
    config = Config(connect_timeout=5, read_timeout=10, retries={"mode": "standard", "total_max_attempts": 3})
    client = boto3.client("cloudwatch", region_name=cluster.region, config=config)
    return CloudWatch(client, namespace=cluster.metric_namespace, cluster=cluster.cluster, lines=Lines())


def _has_boto3() -> bool:
    return find_spec("boto3") is not None


def _instance_of(environment: Environment) -> str | None:
    return environment.node if environment.node.startswith("i-") else instance_id()


def instance_id(metadata: str = _METADATA, board: Path = _BOARD) -> str | None:
    """Return the instance that this process runs on. None: neither its firmware nor its metadata service says.

    Nitro instances have it in their firmware, which a pod reads too; a pod does not reach the metadata service of an
    instance that answers one hop only.

    Args:
        metadata: The address of the instance metadata service.
        board: The file with the asset tag of the board.

    Sources: https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/identify_ec2_instances.html and
    https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/instancedata-data-retrieval.html
    """
    found = board.read_text(encoding="utf-8").strip() if board.is_file() else ""
    if re.fullmatch(r"i-[0-9a-f]+", found):
        return found
    request = urllib.request.Request(  # noqa: S310 - the link-local address
        f"{metadata}/api/token", method="PUT", headers={"X-aws-ec2-metadata-token-ttl-seconds": "60"}
    )
    try:
        with urllib.request.urlopen(request, timeout=_SECONDS) as answer:  # noqa: S310
            token = answer.read().decode("ascii")
        request = urllib.request.Request(  # noqa: S310
            f"{metadata}/meta-data/instance-id", headers={"X-aws-ec2-metadata-token": token}
        )
        with urllib.request.urlopen(request, timeout=_SECONDS) as answer:  # noqa: S310
            return str(answer.read().decode("ascii"))
    except OSError:
        return None
