"""GPUs that several jobs share: how it is said, and what a node of a type then offers."""

from typing import Any

import pytest

from cdk_training_cluster import GpuSharing, NodeGroup, Placement, instance_type_info
from cdk_training_cluster.instance_types.mig import mig_gpu
from cdk_training_cluster.nodes.rules import ClusterContext, together_warnings


@pytest.mark.parametrize(
    ("sharing", "type_name", "partitions", "shares"),
    [
        (GpuSharing.mig("1g.10gb"), "p5.48xlarge", {"1g.10gb": 7}, 56),
        (GpuSharing.mig("1g.10gb"), "p4d.24xlarge", {"1g.10gb": 4}, 32),
        (GpuSharing.mig({"3g.71gb": 1, "1g.18gb": 4}), "p5en.48xlarge", {"3g.71gb": 1, "1g.18gb": 4}, 40),
        (GpuSharing.mps(4), "g6.12xlarge", {}, 16),
        (GpuSharing.time_slicing(10), "g6.xlarge", {}, 10),
    ],
)
def test_a_node_offers_a_share_for_each_job(
    sharing: GpuSharing, type_name: str, partitions: dict[str, int], shares: int
) -> None:
    info = instance_type_info(type_name)
    assert sharing.partitions_of(info) == partitions
    assert sharing.shares_of(info) == shares


@pytest.mark.parametrize(
    "name", ["p4d.24xlarge", "p5.48xlarge", "p5e.48xlarge", "p6-b200.48xlarge", "p6-b300.48xlarge"]
)
def test_as_many_partitions_of_a_profile_as_nvidia_says_fill_a_gpu_and_no_more(name: str) -> None:
    gpu = mig_gpu(instance_type_info(name))
    assert gpu is not None
    for profile, most in gpu.profiles.items():
        compute, memory = gpu.slices({profile: most})
        assert compute <= gpu.compute_slices
        assert memory <= gpu.memory_slices
        more = gpu.slices({profile: most + 1})
        assert profile.endswith("+me") or more[0] > gpu.compute_slices or more[1] > gpu.memory_slices


@pytest.mark.parametrize(
    ("call", "given", "message"),
    [
        (GpuSharing.mps, 1, "replicas must be at least 2, got 1"),
        (GpuSharing.mps, 49, "replicas must be at most 48, got 49"),
        (GpuSharing.time_slicing, 1, "replicas must be at least 2, got 1: leave gpu_sharing out for 1"),
        (GpuSharing.mig, "7", "profiles must be a MIG profile, such as '1g.10gb'"),
        (GpuSharing.mig, {}, "profiles must be a MIG profile, such as '1g.10gb'"),
        (GpuSharing.mig, {"0.5": 1}, "profiles must have MIG profiles for keys"),
        (GpuSharing.mig, {"1g.10gb": 0.5}, "profiles['1g.10gb'] must be a whole number of at least 1, got 0.5"),
    ],
)
def test_what_is_no_sharing_is_refused(call: Any, given: Any, message: str) -> None:
    with pytest.raises(ValueError) as refused:  # noqa: PT011  # the text is compared
        call(given)
    assert str(refused.value).startswith(message)


def test_partitioned_nodes_need_no_placement_group_and_report_no_utilization() -> None:
    group = NodeGroup("a", instance_types=["p5.48xlarge"], count=2, gpu_sharing=GpuSharing.mig("1g.10gb"))
    assert group.chosen_placement is Placement.NONE
    said = together_warnings(ClusterContext.of([group]))
    assert said["idleUnmeasured"].startswith("node group 'a': the accelerators of p5.48xlarge report no utilization")
