"""What preflight says of the EKS cluster that HyperPod joins: by answers, and on a local AWS that is prepared."""

from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import boto3
import pytest

from cdk_training_cluster.nodes.orchestrator_kind import OrchestratorKind
from cdk_training_cluster_cli.prepare.preflight.checks import Aws, Outcome, Verdict, run_checks
from cdk_training_cluster_cli.prepare.preflight.command import checks_of
from cdk_training_cluster_cli.prepare.preflight.hyperpod import (
    hyperpod_checks,
    judge_add_on,
    judge_eks_cluster,
    judge_private,
)
from cdk_training_cluster_cli.prepare.preflight.images import judge_image
from cdk_training_cluster_cli.prepare.preflight.needs import ImageNeed, Needs, needs_of
from cdk_training_cluster_cli.prepare.preflight.permissions import actions_for
from cdk_training_cluster_file import ClusterFile, read_cluster_file
from examples import PROJECT
from local_aws import LocalAws
from rehearsal.preparation import account_of, prepare

_FILE = PROJECT / "clusters/hyperpod-eks.yaml"
_ADD_ON = "amazon-sagemaker-hyperpod-taskgovernance"
_SUBNET = "subnet-0a1b2c3d4e5f67890"


def _described(**changes: Any) -> dict[str, Any]:
    """Return what EKS says of the cluster that the example names, with changes."""
    network = {"vpcId": "vpc-0a1b2c3d4e5f67890", "clusterSecurityGroupId": "sg-0a1b2c3d4e5f67890"}
    return {
        "arn": "arn:aws:eks:us-east-1:111122223333:cluster/training",
        "status": "ACTIVE",
        "version": "1.34",
        "accessConfig": {"authenticationMode": "API"},
        **changes,
        "resourcesVpcConfig": {**network, **changes.get("resourcesVpcConfig", {})},
    }


def _cluster(answer: dict[str, Any] | None) -> Verdict:
    file = read_cluster_file(_FILE)
    assert file.orchestrator.hyperpod is not None
    assert file.network is not None
    return judge_eks_cluster(file.orchestrator.hyperpod, file.network, "us-east-1", answer)


def _table(gateway: str, **link: Any) -> dict[str, Any]:
    return {"RouteTableId": "rtb-1", "Associations": [link], "Routes": [{"GatewayId": gateway}]}


def _image(volumes: int = 1, **changes: Any) -> Verdict:
    need = ImageNeed(
        name="workers", image="ami-1", architectures={"ml.p5.48xlarge": ("x86_64",)}, root_volume_gib=None
    )
    disks = [
        {"DeviceName": f"/dev/sd{n}", "Ebs": {"Encrypted": changes.get("encrypted", False)}} for n in range(volumes)
    ]
    image = {"State": "available", "Architecture": "x86_64", "OwnerId": changes.get("owner", "111122223333")}
    return judge_image(need, "111122223333", ("ami-1", {**image, "BlockDeviceMappings": disks}))


_VERDICTS: dict[str, tuple[Callable[[], Verdict], Outcome, str]] = {
    "as it must be": (lambda: _cluster(_described()), Outcome.PASS, "ACTIVE with Kubernetes 1.34"),
    "an image": (_image, Outcome.PASS, "ami-1 is available for x86_64"),
    "an image of others": (
        lambda: _image(owner="444455556666"),
        Outcome.FAIL,
        "is owned by 444455556666, not by 111122223333",
    ),
    "an image that is encrypted, of two volumes": (
        lambda: _image(2, encrypted=True),
        Outcome.FAIL,
        "the image ami-1 is encrypted and has 2 volumes -> copy it without encryption and with its root volume only",
    ),
    "none": (lambda: _cluster(None), Outcome.FAIL, "there is no EKS cluster training in us-east-1"),
    "being made": (lambda: _cluster(_described(status="CREATING")), Outcome.FAIL, "training is CREATING, not ACTIVE"),
    "a mode that HyperPod lacks": (
        lambda: _cluster(_described(accessConfig={"authenticationMode": "CONFIG_MAP"})),
        Outcome.FAIL,
        "aws eks update-cluster-config --region us-east-1 --name training --access-config authenticationMode=API_AND",
    ),
    "an old version": (
        lambda: _cluster(_described(version="1.31")),
        Outcome.FAIL,
        "training has Kubernetes 1.31, and HyperPod takes 1.32 to 1.34",
    ),
    "a new version": (lambda: _cluster(_described(version="1.35")), Outcome.UNKNOWN, "1.35, newer than the 1.34"),
    "another account's": (
        lambda: _cluster(_described(arn="arn:aws:eks:us-east-1:444455556666:cluster/training")),
        Outcome.FAIL,
        "write eks_cluster_arn: arn:aws:eks:us-east-1:444455556666:cluster/training",
    ),
    "another VPC and group": (
        lambda: _cluster(_described(resourcesVpcConfig={"vpcId": "vpc-1", "clusterSecurityGroupId": "sg-1"})),
        Outcome.FAIL,
        "write vpc_id: vpc-1, with a private subnet of it; write eks_security_group_id: sg-1",
    ),
    "no add-on": (
        lambda: judge_add_on(_ADD_ON, "training", "us-east-1", None),
        Outcome.FAIL,
        "leave priority_classes out of the first deployment, then: aws eks create-addon --region us-east-1 "
        f"--cluster-name training --addon-name {_ADD_ON}",
    ),
    "an add-on that is being made": (
        lambda: judge_add_on(_ADD_ON, "training", "us-east-1", {"status": "CREATING"}),
        Outcome.FAIL,
        f"the add-on {_ADD_ON} of training is CREATING: until it is ACTIVE, priority_classes cannot be deployed",
    ),
    "no agent": (
        lambda: judge_add_on("eks-pod-identity-agent", "training", "us-east-1", None),
        Outcome.FAIL,
        "without which pods of jobs get no credentials of the job role -> aws eks create-addon --region us-east-1",
    ),
    "an add-on": (
        lambda: judge_add_on(_ADD_ON, "training", "us-east-1", {"status": "ACTIVE"}),
        Outcome.PASS,
        "is ACTIVE",
    ),
    "a private subnet": (
        lambda: judge_private(_SUBNET, [_table("igw-1", Main=True), _table("local", SubnetId=_SUBNET)]),
        Outcome.PASS,
        "is private",
    ),
    "a public subnet": (
        lambda: judge_private(_SUBNET, [_table("igw-1", SubnetId=_SUBNET)]),
        Outcome.FAIL,
        "rtb-1 leads to an internet gateway",
    ),
    "a subnet of a public main table": (
        lambda: judge_private(_SUBNET, [_table("igw-1", Main=True)]),
        Outcome.FAIL,
        "rtb-1 leads to an internet gateway",
    ),
    "no tables": (lambda: judge_private(_SUBNET, []), Outcome.UNKNOWN, "no route table"),
}


@pytest.mark.parametrize(("judge", "outcome", "said"), _VERDICTS.values(), ids=_VERDICTS)
def test_what_hyperpod_finds_is_judged(judge: Callable[[], Verdict], outcome: Outcome, said: str) -> None:
    verdict = judge()
    assert verdict.outcome is outcome
    assert said in f"{verdict.said} -> {verdict.mend}"


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> ClusterFile:
    """The example, with the priorities of a later deployment."""
    text = _FILE.read_text().replace("# priority_classes", "priority_classes")
    changed = tmp_path_factory.mktemp("file") / "cluster.yaml"
    changed.write_text(text)
    cluster = read_cluster_file(changed)
    assert cluster.orchestrator.hyperpod is not None
    assert cluster.orchestrator.hyperpod.priority_classes == {"production": 100, "research": 10}
    return cluster


@pytest.fixture(scope="module")
def needs(file: ClusterFile) -> Needs:
    return needs_of(str(_FILE), file)


@pytest.fixture
def user(file: ClusterFile, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[Aws, LocalAws]]:
    with LocalAws(tmp_path / "log.txt", account=account_of(file)) as aws:
        prepare(file, aws)
        for name, value in aws.environment().items():
            if name.startswith("AWS_"):
                monkeypatch.setenv(name, value)
        caller = f"arn:aws:iam::{aws.account}:user/me"
        yield Aws(session=boto3.Session(), region=aws.region, account=aws.account, caller=caller), aws


def test_the_account_of_the_example_is_ready_until_its_add_on_goes(needs: Needs, user: tuple[Aws, LocalAws]) -> None:
    me, aws = user
    lines = {line.name: line for line in run_checks(list(hyperpod_checks(needs)), me)}
    assert {name: line.outcome for name, line in lines.items()} == {
        f"private subnet {_SUBNET}": Outcome.PASS,
        "EKS cluster training": Outcome.PASS,
        "add-on eks-pod-identity-agent": Outcome.PASS,
        f"add-on {_ADD_ON}": Outcome.PASS,
    }
    aws.client("eks").delete_addon(clusterName="training", addonName=_ADD_ON)
    aws.forget_calls()
    lines = {line.name: line for line in run_checks(checks_of(needs, datetime.now(UTC)), me)}
    assert lines[f"add-on {_ADD_ON}"].outcome is Outcome.FAIL
    page = (PROJECT / "docs/commands/beginning.md").read_text(encoding="utf-8")
    asked = {me.action(call.operation) for call in aws.calls()}
    assert {action for action in asked if f"`{action}`" not in page} == set()


def test_the_deployer_needs_the_permissions_of_eks(needs: Needs) -> None:
    assert needs.orchestrator is OrchestratorKind.HYPERPOD_EKS
    assert [action for action in actions_for(needs) if action.startswith("eks:")] == [
        "eks:AssociateAccessPolicy",
        "eks:CreateAccessEntry",
        "eks:CreatePodIdentityAssociation",
        "eks:DeleteAccessEntry",
        "eks:DescribeAccessEntry",
        "eks:DescribeCluster",
    ]


def test_other_clusters_are_asked_nothing() -> None:
    path = PROJECT / "clusters/hyperpod.yaml"
    needs = Needs(file=str(path), cluster=read_cluster_file(path), groups=())
    assert list(hyperpod_checks(needs)) == []
