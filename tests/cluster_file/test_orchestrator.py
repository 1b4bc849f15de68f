"""Which orchestrator a cluster file names, and how."""

from pathlib import Path

import pytest

from cdk_training_cluster_file.kubernetes import KubernetesSettings
from cdk_training_cluster_file.orchestrators.batch import BatchJobSettings
from cluster_files import RIGHT, problems

_FORMS = (
    "must be none, slurm, eks, hyperpod or batch, or one key with its settings, such as "
    "{hyperpod: {orchestrator: eks}}"
)


@pytest.mark.parametrize(
    ("written", "said"),
    [
        pytest.param("sulrm", f'orchestrator: {_FORMS}, got "sulrm"; did you mean slurm?', id="misspelt"),
        pytest.param("3", f"orchestrator: {_FORMS}, got 3", id="number"),
        pytest.param(
            "{slurm: {}, eks: {}}",
            "orchestrator: must name one orchestrator, got slurm and eks; make a cluster for each",
            id="two",
        ),
        pytest.param("{}", "orchestrator: must name one orchestrator, got none; make a cluster for each", id="empty"),
        pytest.param("{slurm: }", "orchestrator.slurm: has no value; write one, or leave the key out", id="no value"),
        pytest.param(
            "{hyperpod: {orchestrator: x}}",
            'orchestrator.hyperpod.orchestrator: must be slurm or eks, got "x"',
            id="setting",
        ),
    ],
)
def test_an_orchestrator_is_one_word_or_one_key(tmp_path: Path, written: str, said: str) -> None:
    assert problems(tmp_path, f"{RIGHT}orchestrator: {written}\n") == [f"cluster.yaml:12: {said}"]


@pytest.mark.parametrize("place", ["zone_id: use1-az3", "bucket: runs--use1-az3--x-s3"])
def test_a_zone_id_that_eks_refuses_is_refused_at_once(tmp_path: Path, place: str) -> None:
    text = (
        f"{RIGHT}checkpoints: {{express: {{{place}}}}}\norchestrator: {{eks: {{control_plane_zone: us-east-1a}}}}\n"
    )
    assert [each.partition(": ")[2] for each in problems(tmp_path, text)] == [
        "availability_zone: must be another zone than use1-az3, the zone of the checkpoints' directory bucket: the "
        "nodes' subnet is one of the control plane's subnets, and EKS takes none of these in cac1-az3, use1-az3, "
        "usw1-az2; name another zone, and its id"
    ]


def test_no_orchestrator_may_be_said(tmp_path: Path) -> None:
    assert problems(tmp_path, f"{RIGHT}orchestrator: none\n", legal=True) == []


@pytest.mark.parametrize("script", [None, "/fsx/train.py"])
def test_a_file_says_how_often_batch_starts_a_job(script: str | None) -> None:
    job = BatchJobSettings(name="train", image="my/image:1", script=script, attempts=1).for_constructs()
    assert job.attempts == 1


_HYPERPOD = f"""{RIGHT}
orchestrator:
  hyperpod:
    orchestrator: eks
    eks_cluster_arn: arn:aws:eks:us-east-1:111122223333:cluster/training
    eks_security_group_id: sg-0a1b2c3d4e5f67890
"""
_NETWORK = "network: {vpc_id: vpc-0a1b2c3d4e5f67890, subnet_id: subnet-0a1b2c3d4e5f67890}\n"


@pytest.mark.parametrize(
    ("written", "found", "said"),
    [
        pytest.param(_HYPERPOD + _NETWORK, [], [], id="right"),
        pytest.param(
            _HYPERPOD,
            ["network"],
            ["must name the VPC of the EKS cluster and a private subnet of it for HyperPod on EKS"],
            id="no network",
        ),
        pytest.param(
            _HYPERPOD.replace("    eks_security_group_id: sg-0a1b2c3d4e5f67890\n", "") + _NETWORK,
            ["orchestrator.hyperpod"],
            ["eks_security_group_id is required on EKS"],
            id="no security group",
        ),
    ],
)
def test_hyperpod_joins_an_eks_cluster_of_the_same_network(
    tmp_path: Path, written: str, found: list[str], said: list[str]
) -> None:
    told = [each.split(": ", 2)[1:] for each in problems(tmp_path, written, legal=not found)]
    assert [where for where, _ in told] == found
    assert all(sentence.startswith(start) for (_, sentence), start in zip(told, said, strict=True))


def test_images_of_jobs_are_pinned_by_digest() -> None:
    image = f"public.ecr.aws/my/image@sha256:{'0' * 64}"
    assert KubernetesSettings(image=image).image == image
    assert BatchJobSettings(name="train", image=image, script="/fsx/train.py").for_constructs().image == image
