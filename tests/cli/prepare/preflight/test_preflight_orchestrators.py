"""What preflight makes of what an orchestrator finds in the account."""

from datetime import UTC, date, datetime
from functools import partial
from types import SimpleNamespace
from typing import Any

import pytest

from cdk_training_cluster.nodes.orchestrator_kind import OrchestratorKind
from cdk_training_cluster_cli.prepare.preflight.checks import Outcome, Verdict
from cdk_training_cluster_cli.prepare.preflight.needs import Needs
from cdk_training_cluster_cli.prepare.preflight.orchestrators import (
    judge_control_plane_subnet,
    judge_default_group,
    judge_eks_zones,
    judge_kubernetes_version,
    orchestrator_checks,
)
from cdk_training_cluster_file import read_cluster_file
from cdk_training_cluster_file.model import NetworkSettings
from examples import PROJECT

_ITSELF = {"IpProtocol": "-1", "UserIdGroupPairs": [{"GroupId": "sg-1"}], "IpRanges": []}
_OUT = {"IpProtocol": "-1", "UserIdGroupPairs": [], "IpRanges": [{"CidrIp": "0.0.0.0/0"}]}
_VPC = "vpc-0a1b2c3d"


def _group(come_in: list[dict[str, Any]], go_out: list[dict[str, Any]]) -> dict[str, Any]:
    return {"GroupId": "sg-1", "IpPermissions": come_in, "IpPermissionsEgress": go_out}


_IDS = {"us-east-1a": "use1-az6", "us-east-1b": "use1-az1", "us-east-1e": "use1-az3", "us-east-1f": "use1-az5"}
_ZONES = [{"ZoneName": name, "ZoneId": each, "State": "available"} for name, each in _IDS.items()]


def _zones(nodes: str, second: str | None, state: str = "available") -> Verdict:
    return judge_eks_zones(nodes, second, [{**each, "State": state} for each in _ZONES])


def _plane(**more: Any) -> Verdict:
    subnet = {"VpcId": _VPC, "AvailabilityZone": "us-east-1a", "AvailabilityZoneId": "use1-az6"}
    return judge_control_plane_subnet(_VPC, "us-east-1b", {**subnet, **more})


NOW = datetime(2026, 11, 27, tzinfo=UTC)
_TODAY = NOW.date()


def _version(wanted: str, deployed: str | None, today: date = _TODAY) -> Verdict:
    return judge_kubernetes_version(wanted, today, deployed)


_default = partial(judge_default_group, _VPC, "us-east-1")
_VERDICTS: dict[str, tuple[Verdict, Outcome, str]] = {
    "as EC2 makes it": (_default(_group([_ITSELF], [_OUT])), Outcome.PASS, "reach each other"),
    "closed": (_default(_group([], [])), Outcome.FAIL, "in from itself or out"),
    "another group let in": (
        _default(_group([{**_ITSELF, "UserIdGroupPairs": [{"GroupId": "sg-2"}]}], [_OUT])),
        Outcome.FAIL,
        "authorize-security-group-ingress --region us-east-1 --group-id sg-1 --ip-permissions "
        "IpProtocol=-1,UserIdGroupPairs=[{GroupId=sg-1}]",
    ),
    "one port let in": (_default(_group([{**_ITSELF, "IpProtocol": "tcp"}], [_OUT])), Outcome.FAIL, "in from itself"),
    "no way out": (_default(_group([_ITSELF], [_ITSELF])), Outcome.FAIL, "authorize-security-group-egress"),
    "no group": (_default(None), Outcome.UNKNOWN, "no default security group of vpc-0a1b2c3d"),
    "two zones": (
        _zones("us-east-1b", "us-east-1a"),
        Outcome.PASS,
        "us-east-1b (use1-az1) and us-east-1a (use1-az6)",
    ),
    "a second zone without EKS": (
        _zones("us-east-1b", "us-east-1e"),
        Outcome.FAIL,
        "us-east-1e is use1-az3 in this account, where EKS takes no subnets of a cluster -> write "
        "eks.control_plane_zone: us-east-1a or us-east-1f",
    ),
    "nodes in a zone without EKS": (
        _zones("us-east-1e", "us-east-1a"),
        Outcome.FAIL,
        "write availability_zone: us-east-1b or us-east-1f",
    ),
    "no second zone": (_zones("us-east-1b", "us-east-1c"), Outcome.FAIL, "no Availability Zone us-east-1c"),
    "an impaired zone": (_zones("us-east-1b", "us-east-1a", "impaired"), Outcome.UNKNOWN, "us-east-1b is impaired"),
    "zones and a subnet": (_zones("us-east-1b", None), Outcome.PASS, "in us-east-1b (use1-az1)"),
    "a subnet": (_plane(), Outcome.PASS, "us-east-1a (use1-az6)"),
    "a subnet of another VPC": (_plane(VpcId="vpc-2"), Outcome.FAIL, "in vpc-2, not in vpc-0a1b2c3d"),
    "a subnet beside the nodes": (_plane(AvailabilityZone="us-east-1b"), Outcome.FAIL, "demands two zones"),
    "a subnet without EKS": (_plane(AvailabilityZoneId="use1-az3"), Outcome.FAIL, "use1-az3 in this account"),
    "no subnet": (judge_control_plane_subnet(_VPC, "us-east-1b", None), Outcome.FAIL, "no such subnet"),
    "no cluster yet": (_version("1.35", None), Outcome.PASS, "none yet"),
    "the same version": (_version("1.35", "1.35"), Outcome.PASS, "1.35"),
    "the next version": (_version("1.10", "1.9"), Outcome.PASS, "1.10"),
    "a version left out": (_version("1.37", "1.35"), Outcome.FAIL, "kubernetes_version: '1.36'"),
    "a new cluster in extended support": (
        _version("1.33", None),
        Outcome.UNKNOWN,
        "extended support since 2026-07-29",
    ),
    "a cluster in extended support": (_version("1.33", "1.33"), Outcome.UNKNOWN, "write a newer kubernetes_version"),
    "a new cluster without support": (
        _version("1.32", None, date(2027, 3, 23)),
        Outcome.FAIL,
        "EKS has ended its support of Kubernetes 1.32 on 2027-03-23",
    ),
    "an older version": (_version("1.34", "1.35"), Outcome.FAIL, "kubernetes_version: '1.35'"),
}


@pytest.mark.parametrize(("verdict", "outcome", "said"), _VERDICTS.values(), ids=_VERDICTS)
def test_what_an_orchestrator_finds_is_judged(verdict: Verdict, outcome: Outcome, said: str) -> None:
    assert verdict.outcome is outcome
    assert said in f"{verdict.said} -> {verdict.mend}"


def test_each_orchestrator_is_asked_about_its_own() -> None:
    answers = SimpleNamespace(
        describe_cluster=lambda *, name: {"cluster": {"name": name, "version": "1.30"}},
        describe_availability_zones=lambda *, Filters: {  # noqa: N803 - EC2's name
            "AvailabilityZones": _ZONES if Filters[0]["Values"] == ["availability-zone"] else []
        },
        describe_security_groups=lambda *, Filters: {  # noqa: N803 - EC2's name
            "SecurityGroups": [_group([], [_OUT])] if Filters[0]["Values"] == [_VPC] else []
        },
    )
    aws: Any = SimpleNamespace(client=lambda _: answers)
    network = NetworkSettings(vpc_id=_VPC, subnet_id="subnet-0a1b2c3d")
    found: dict[str, Outcome] = {}
    for name, kind in (("base-pod", OrchestratorKind.EKS), ("batch", OrchestratorKind.BATCH)):
        cluster = read_cluster_file(PROJECT / f"clusters/{name}.yaml")
        for own in (None, network):
            changed = cluster.model_copy(update={"network": own})
            needs = Needs(file=name, cluster=changed, groups=(), orchestrator=kind)
            found |= {each.name: each.judge(each.ask(aws)).outcome for each in orchestrator_checks(needs, NOW)}
    assert found == {
        "zones of the EKS cluster": Outcome.PASS,
        "EKS cluster base-pod": Outcome.FAIL,
        f"default security group of {_VPC}": Outcome.FAIL,
    }
