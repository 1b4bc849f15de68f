"""A real Slurm that gives out memory, as a cluster's settings let it."""

from pathlib import Path

import pytest

from cdk_training_cluster import NodeGroup
from cdk_training_cluster.nodes.rules.context import ClusterContext
from cdk_training_cluster.orchestrators.slurm.configuration import slurm_configuration
from cdk_training_cluster.orchestrators.slurm.settings import SlurmNodes, SlurmSettings
from real_slurm import real_slurm

pytestmark = pytest.mark.sweep("test-slurm")

_NODES = ClusterContext.of([NodeGroup("workers", instance_types=["p5.48xlarge"], count=1)])
# The node has 1,000 MB and 96 CPUs here.
_SETTINGS = SlurmSettings(
    node_groups={"workers": SlurmNodes(fixed=True)},
    custom_settings={"SelectTypeParameters": "CR_CPU_Memory", "DefMemPerCPU": "10"},
)


def test_jobs_on_a_node_get_together_no_more_than_its_memory(tmp_path: Path) -> None:
    with real_slurm(tmp_path, slurm_configuration(_SETTINGS, _NODES), _NODES) as slurm:
        slurm.start()
        for memory in ("--mem=800", "--cpus-per-task=10"):
            slurm.wait_for_job(slurm.submit(memory, script="sleep 600"), "RUNNING")
        waits = slurm.submit("--mem=200", script="true")
        slurm.wait_for("Slurm says why", lambda: slurm.shown("job", waits)["Reason"] == "Resources")
        assert "mem=900M" in slurm.shown("node", "workers-1")["AllocTRES"]
