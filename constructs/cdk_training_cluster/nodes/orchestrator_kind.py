"""The orchestrators that a cluster's jobs can run on."""

from dataclasses import dataclass
from enum import Enum, auto
from typing import Self


class ImageFamily(Enum):
    """Which of AWS's images nodes are launched from, where the user gives none."""

    DEEP_LEARNING = auto()
    PCS = auto()
    ECS = auto()


@dataclass(frozen=True, kw_only=True)
class OrchestratorTraits:
    """What the rules about nodes have to know of an orchestrator.

    Attributes:
        runs_jobs: Whether it runs jobs; if not, users start them on the nodes.
        is_hyperpod: Whether nodes are instance groups of SageMaker HyperPod, which takes no launch template.
        image_family: AWS's images for its nodes.
        image_gib: The root volume that AWS suggests for the image that its service chooses, in GiB. Zero: the service
            chooses none.
        needs_free_interface: Whether a job gets a network interface of its own on each of its nodes.
        shares_gpus: Whether it gives a job a part of a GPU.
        shares_one_mps_gpu: Whether it gives out the MPS shares of one GPU of a node at a time.
        imex: How NVIDIA IMEX is set up for a job. Empty: the service sets it up.
    """

    runs_jobs: bool = True
    is_hyperpod: bool = False
    image_family: ImageFamily = ImageFamily.DEEP_LEARNING
    image_gib: int = 0
    needs_free_interface: bool = False
    shares_gpus: bool = False
    shares_one_mps_gpu: bool = False
    imex: str = "start the service nvidia-imex for each job, with Slurm in a prolog"


_ON_HYPERPOD = OrchestratorTraits(is_hyperpod=True, imex="")


class OrchestratorKind(Enum):
    """What launches nodes for jobs; the value is what sentences call it."""

    _value_: str
    traits: OrchestratorTraits

    NONE = "Auto Scaling groups", OrchestratorTraits(runs_jobs=False)
    # It gives out parts of a GPU by gres.
    SLURM = "AWS PCS", OrchestratorTraits(image_family=ImageFamily.PCS, shares_gpus=True, shares_one_mps_gpu=True)
    # NVIDIA's device plugin gives out parts of a GPU.
    # https://docs.aws.amazon.com/eks/latest/APIReference/API_CreateNodegroup.html
    EKS = "Amazon EKS", OrchestratorTraits(image_gib=20, shares_gpus=True, imex="install NVIDIA's DRA driver")
    HYPERPOD_SLURM = "SageMaker HyperPod on Slurm", _ON_HYPERPOD
    HYPERPOD_EKS = "SageMaker HyperPod on EKS", _ON_HYPERPOD
    # https://docs.aws.amazon.com/batch/latest/userguide/mnp-ce.html
    BATCH = "AWS Batch", OrchestratorTraits(image_family=ImageFamily.ECS, needs_free_interface=True)

    def __new__(cls, words: str, traits: OrchestratorTraits) -> Self:
        """Make a kind with its words for a value."""
        kind = object.__new__(cls)
        kind._value_, kind.traits = words, traits
        return kind
