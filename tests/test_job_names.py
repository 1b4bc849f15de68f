"""The package for jobs repeats names and figures of the library, since it needs nothing of it."""

import json
from pathlib import Path

import cdk_training_cluster_cli.money.plan
from cdk_training_cluster_cli.data.checkpoints.proof import ALGORITHMS
from cluster_contract import checkpoints, runs
from cluster_contract.metrics import NODE_METRICS, job_namespace
from cluster_idle.readings import HEARTBEAT
from cluster_job import digests, metrics, records
from cluster_job.checkpoints import Aside
from cluster_job.environment import Cluster
from cluster_job.metrics import peak_flops


def test_peaks_are_those_of_the_plan() -> None:
    peaks = json.loads((Path(cdk_training_cluster_cli.money.plan.__file__).parent / "peaks.json").read_text())
    gpus = {name: found["tflops"] * 1e12 for name, found in peaks.items() if not name.startswith("Trainium")}

    assert {name: peak_flops(f"NVIDIA {name} 80GB") for name in gpus} == gpus
    assert peak_flops("NVIDIA L4") is None


def test_names_are_those_of_the_library() -> None:
    assert {one.name: one.value for one in metrics.RunMetric} == {one.name: one.value for one in runs.RunMetric}
    assert (NODE_METRICS.cluster_dimension, runs.RUN_DIMENSION) == (metrics.CLUSTER, metrics.RUN)
    assert (NODE_METRICS.instance_id_dimension, HEARTBEAT) == (metrics.INSTANCE_ID, metrics.HEARTBEAT)
    cluster = Cluster(cluster="llama", node_group="workers", region="us-east-1")
    assert job_namespace("llama") == cluster.metric_namespace
    assert records.REPORTS == runs.REPORTS
    assert (digests.DIGESTS, tuple(one.value for one in Aside)) == (checkpoints.DIGESTS, checkpoints.SET_ASIDE)
    assert digests.ALGORITHM in ALGORITHMS
