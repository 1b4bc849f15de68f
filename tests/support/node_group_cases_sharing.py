"""Cases of the rules about shared GPUs, by the rule's id."""

from collections.abc import Mapping, Sequence
from typing import Any

from cdk_training_cluster import GpuSharing, Placement
from cdk_training_cluster.nodes.orchestrator_kind import OrchestratorKind
from node_group_cases import OWN_IMAGE, Case
from node_group_cases import case as any_case

_MIXED = {"3g.40gb": 1, "2g.20gb": 1, "1g.10gb": 2}


def case(*errors: str, **settings: Any) -> Case:
    return any_case(*errors, orchestrator=OrchestratorKind.EKS, **settings)


def _mig(profiles: str | Mapping[str, int], *errors: str, name: str = "p5.48xlarge") -> Case:
    return case(*errors, instance_types=[name], gpu_sharing=GpuSharing.mig(profiles))


def _fits(compute: int, memory: int) -> str:
    return (
        "gpu_sharing must fit on one GPU of p5.48xlarge, which has 7 slices of compute and 8 of memory, got "
        f"{compute} and {memory}: take partitions away"
    )


def _no_mig(name: str) -> str:
    return (
        f"gpu_sharing must not be GpuSharing.mig() for {name}, whose GPUs cannot be partitioned: share them with "
        "GpuSharing.mps() or GpuSharing.time_slicing(), or choose a type such as p5.48xlarge"
    )


SHARING_CASES: Mapping[str, Sequence[Case]] = {
    "sharingOrchestrator": (
        *(
            any_case(
                f"gpu_sharing must be left out with {kind.value}, where a job gets whole GPUs: use AWS PCS or "
                "Amazon EKS",
                orchestrator=kind,
                gpu_sharing=GpuSharing.mps(2),
            )
            for kind in (OrchestratorKind.NONE, OrchestratorKind.BATCH)
        ),
        any_case(orchestrator=OrchestratorKind.SLURM, gpu_sharing=GpuSharing.time_slicing(2)),
        any_case(orchestrator=OrchestratorKind.EKS, gpu_sharing=GpuSharing.mps(2)),
    ),
    "mpsOfOneGpu": (
        any_case(
            orchestrator=OrchestratorKind.SLURM,
            gpu_sharing=GpuSharing.mps(2),
            instance_types=["g6.12xlarge"],
            warnings={
                "mpsOfOneGpu": "gpu_sharing is GpuSharing.mps() for g6.12xlarge with 4 GPUs: Slurm gives out the "
                "shares of one of them at a time and leaves the others idle; use a type with one GPU, or "
                "GpuSharing.time_slicing()"
            },
        ),
        any_case(orchestrator=OrchestratorKind.SLURM, gpu_sharing=GpuSharing.mps(2), instance_types=["g6.xlarge"]),
        case(gpu_sharing=GpuSharing.mps(2), instance_types=["g6.12xlarge"]),
    ),
    "sharedGpus": (
        case(
            "gpu_sharing must be left out for trn1.32xlarge, which has no NVIDIA GPU to share",
            instance_types=["trn1.32xlarge"],
            gpu_sharing=GpuSharing.mps(2),
        ),
        *(
            case(instance_types=["g6.48xlarge"], gpu_sharing=each)
            for each in (GpuSharing.mps(48), GpuSharing.time_slicing(99))
        ),
    ),
    "migGpu": (
        _mig("1g.10gb", _no_mig("g6e.48xlarge"), name="g6e.48xlarge"),
        case(
            _no_mig("g6f.xlarge"),
            instance_types=["g6f.xlarge"],
            machine_image=OWN_IMAGE,
            gpu_sharing=GpuSharing.mig("1g.10gb"),
        ),
        _mig("1g.24gb", name="g7e.48xlarge"),
    ),
    "migProfile": (
        _mig(
            "1g.18gb",
            "gpu_sharing must name MIG profiles of the H100 of p5.48xlarge, which are 1g.10gb, 1g.10gb+me, 1g.20gb, "
            "2g.20gb, 3g.40gb, 4g.40gb, 7g.80gb, got 1g.18gb",
        ),
        _mig({"3g.40gb": 3}, "gpu_sharing must have at most 2 of 3g.40gb on a GPU of p5.48xlarge, got 3"),
        _mig({"3g.40gb": 2, "1g.10gb": 1}, _fits(7, 9)),
        _mig({"4g.40gb": 1, "2g.20gb": 2}, _fits(8, 8)),
        _mig({"3g.40gb": 1, "4g.40gb": 1}),
        _mig(_MIXED),
        *(
            _mig(profile, name=name)
            for name, profile in (
                ("p4d.24xlarge", "1g.5gb"),
                ("p4de.24xlarge", "7g.80gb"),
                ("p5en.48xlarge", "1g.35gb"),
                ("p6-b200.48xlarge", "1g.23gb"),
                ("p6-b300.48xlarge", "2g.67gb"),
            )
        ),
    ),
    "migGang": (
        case(
            "gpu_sharing must not be GpuSharing.mig() beside placement Placement.CLUSTER, got 8 nodes: NCCL does not "
            "run between partitions, so no job spans the nodes; leave placement out, or gpu_sharing for a gang",
            gpu_sharing=GpuSharing.mig(_MIXED),
            placement=Placement.CLUSTER,
        ),
        case(gpu_sharing=GpuSharing.mig(_MIXED), placement=Placement.CLUSTER, count=1),
        case(gpu_sharing=GpuSharing.mig(_MIXED), placement=Placement.NONE),
        case(gpu_sharing=GpuSharing.mps(4), placement=Placement.CLUSTER),
    ),
}
