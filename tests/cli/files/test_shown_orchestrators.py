"""What the commands say of the orchestrator that runs a cluster's jobs."""

from collections.abc import Mapping
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path

import pytest

from cdk_training_cluster.nodes.orchestrator_kind import OrchestratorKind
from cdk_training_cluster.prices import committed_prices
from cdk_training_cluster_cli.files.overview import show
from cdk_training_cluster_cli.money.plan.assumptions import Assumptions
from cdk_training_cluster_cli.money.plan.lines import compute_lines, orchestrator_lines
from cdk_training_cluster_cli.money.plan.shape import shape_of
from cdk_training_cluster_cli.pictures.diagram import architecture
from cdk_training_cluster_cli.prepare.preflight.account import linked_roles
from cdk_training_cluster_cli.prepare.preflight.images import image_checks
from cdk_training_cluster_cli.prepare.preflight.needs import Needs, needs_of
from cdk_training_cluster_cli.prepare.preflight.permissions import ACTIONS
from cdk_training_cluster_cli.prepare.preflight.quotas import quota_checks
from cdk_training_cluster_cli.prepare.preflight.zones import node_addresses
from cdk_training_cluster_file import ClusterFile, read_cluster_file
from cdk_training_cluster_file.orchestrators.choice import ORCHESTRATORS

_FILE = """\
name: pod
availability_zone: us-east-1b
orchestrator: {}
file_system: {{}}
node_groups: [{{name: workers, instance_types: [p5.48xlarge], count: 2, image: latest}}]
"""

_ROLES = {
    "slurm": {"pcs.amazonaws.com"},
    "eks": {"eks.amazonaws.com", "eks-nodegroup.amazonaws.com", "autoscaling.amazonaws.com"},
    "hyperpod": {"hyperpod.sagemaker.amazonaws.com"},
    "batch": {"batch.amazonaws.com"},
}

_WRITTEN = {each: each for each in ORCHESTRATORS} | {
    "eks": "{eks: {control_plane_zone: us-east-1a}}",
    "slurm": "{slurm: {login: {image: ami-0a1b2c3d4e5f67890}}}",
}


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, ClusterFile]:
    directory = tmp_path_factory.mktemp("files")
    for orchestrator, written in _WRITTEN.items():
        (directory / f"{orchestrator}.yaml").write_text(_FILE.format(written))
    return {orchestrator: read_cluster_file(directory / f"{orchestrator}.yaml") for orchestrator in ORCHESTRATORS}


@pytest.fixture(scope="module")
def needs(files: Mapping[str, ClusterFile]) -> Mapping[str, Needs]:
    return {orchestrator: needs_of(orchestrator, file) for orchestrator, file in files.items()}


@pytest.mark.parametrize("orchestrator", ORCHESTRATORS)
def test_preflight_asks_for_what_the_orchestrator_needs(orchestrator: str, needs: Mapping[str, Needs]) -> None:
    assert {role.service for role in linked_roles(needs[orchestrator])} - {"fsx.amazonaws.com"} == _ROLES[
        orchestrator
    ]
    assert {
        kind for kind in needs[orchestrator].nodes if kind.split("::")[1] in {"PCS", "EKS", "SageMaker", "Batch"}
    } <= {*ACTIONS}


def test_nodes_of_eks_and_its_system_nodes_take_addresses_for_pods_as_well(needs: Mapping[str, Needs]) -> None:
    nodes = node_addresses(needs["slurm"])
    assert node_addresses(needs["eks"]) == (nodes + 2) * 17


_PCS_IMAGE = "/aws/service/pcs/ami/dlami-base-ubuntu2404/x86_64/latest/ami-id"


@pytest.mark.parametrize(
    ("orchestrator", "images"),
    [
        ("slurm", {"workers": _PCS_IMAGE, "login": "ami-0a1b2c3d4e5f67890"}),
        # These launch nodes from images of their own, where the file names none.
        *((orchestrator, {}) for orchestrator in ("eks", "hyperpod", "batch")),
    ],
)
def test_preflight_asks_for_the_images_that_the_file_launches_nodes_from(
    orchestrator: str, images: Mapping[str, str], needs: Mapping[str, Needs]
) -> None:
    assert {each.name: each.image for each in needs[orchestrator].images} == images
    assert [check.name for check in image_checks(needs[orchestrator])] == [f"image of {name}" for name in images]


def test_hyperpod_counts_against_quotas_of_sagemaker(needs: Mapping[str, Needs]) -> None:
    names = [check.name for check in quota_checks(needs["hyperpod"])]
    assert "quota of ml.p5.48xlarge for cluster usage" in names
    assert not any("On-Demand" in name for name in names)


def test_a_plan_counts_what_aws_pcs_bills_and_knows_no_price(files: Mapping[str, ClusterFile]) -> None:
    shape = shape_of(files["slurm"])
    lines = {
        line.key: line
        for line in orchestrator_lines(shape, committed_prices(), today=date(2026, 11, 22), hours=Decimal(1))
    }
    assert lines["orchestrator.aws-pcs-node"].what == "3 x node management of AWS PCS"
    login = lines["orchestrator.m7i.2xlarge"]
    assert (login.what, login.per_hour) == (
        "1 x m7i.2xlarge, the orchestrator's own nodes, on demand",
        Decimal("0.4032"),
    )
    assert lines["orchestrator.root-volumes"].what == "gp3, 100 GiB on the orchestrator's own nodes"
    assert lines["orchestrator.aws-pcs-controller-small"].per_hour is None
    assert "--price aws-pcs-controller-small=USD" in lines["orchestrator.aws-pcs-controller-small"].basis


def test_a_plan_takes_no_price_of_ec2_for_hyperpod(files: Mapping[str, ClusterFile]) -> None:
    shape = shape_of(files["hyperpod"])
    (line,) = compute_lines(shape.groups, shape.region, committed_prices(), Assumptions())
    assert line.per_hour is None
    assert "--price ml.p5.48xlarge=USD" in line.basis


def test_a_diagram_shows_the_orchestrator_and_what_launches_nodes(files: Mapping[str, ClusterFile]) -> None:
    text = architecture(files["slurm"])
    assert f'nScheduler["{OrchestratorKind.SLURM.value}<br/>' in text
    assert "queue workers: workers" in text
    assert "nScheduler -->" in text


@pytest.mark.parametrize(
    ("version", "said"),
    [
        ("1.32", "EKS has ended its support of Kubernetes 1.32 on 2027-03-23"),
        ("1.33", "Kubernetes 1.33 is in extended support since 2026-07-29"),
        ("1.36", None),
    ],
)
def test_check_says_that_kubernetes_support_ends(
    version: str, said: str | None, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "pod.yaml"
    orchestrator = f"{{eks: {{control_plane_zone: us-east-1a, kubernetes_version: '{version}'}}}}"
    file.write_text(_FILE.format(orchestrator))
    show(read_cluster_file(file), now=datetime(2027, 3, 23, tzinfo=UTC))
    shown = capsys.readouterr().out
    assert said in shown if said else "support" not in shown
