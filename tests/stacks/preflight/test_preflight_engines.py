"""What preflight makes of what an engine finds in the account."""

from functools import partial
from types import SimpleNamespace
from typing import Any

import pytest

from cdk_training_cluster.orchestrators.kinds import OrchestratorKind
from cdk_training_cluster_stacks.cluster_file import read_cluster_file
from cdk_training_cluster_stacks.cluster_file.model import NetworkSettings
from cdk_training_cluster_stacks.preflight.checks import Outcome, Verdict
from cdk_training_cluster_stacks.preflight.engines import engine_checks, judge_default_group, judge_kubernetes_version
from cdk_training_cluster_stacks.preflight.needs import Needs
from examples import PROJECT

_ITSELF = {"IpProtocol": "-1", "UserIdGroupPairs": [{"GroupId": "sg-1"}], "IpRanges": []}
_OUT = {"IpProtocol": "-1", "UserIdGroupPairs": [], "IpRanges": [{"CidrIp": "0.0.0.0/0"}]}
_VPC = "vpc-0a1b2c3d"


def _group(come_in: list[dict[str, Any]], go_out: list[dict[str, Any]]) -> dict[str, Any]:
    return {"GroupId": "sg-1", "IpPermissions": come_in, "IpPermissionsEgress": go_out}


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
    "no cluster yet": (judge_kubernetes_version("1.35", None), Outcome.PASS, "none yet"),
    "the same version": (judge_kubernetes_version("1.35", "1.35"), Outcome.PASS, "1.35"),
    "the next version": (judge_kubernetes_version("1.10", "1.9"), Outcome.PASS, "1.10"),
    "a version left out": (judge_kubernetes_version("1.37", "1.35"), Outcome.FAIL, "kubernetes_version: '1.36'"),
    "an older version": (judge_kubernetes_version("1.34", "1.35"), Outcome.FAIL, "kubernetes_version: '1.35'"),
}


@pytest.mark.parametrize(("verdict", "outcome", "said"), _VERDICTS.values(), ids=_VERDICTS)
def test_what_an_engine_finds_is_judged(verdict: Verdict, outcome: Outcome, said: str) -> None:
    assert verdict.outcome is outcome
    assert said in f"{verdict.said} -> {verdict.mend}"


def test_each_engine_is_asked_about_its_own() -> None:
    answers = SimpleNamespace(
        describe_cluster=lambda *, name: {"cluster": {"name": name, "version": "1.30"}},
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
            found |= {each.name: each.judge(each.ask(aws)).outcome for each in engine_checks(needs)}
    assert found == {"EKS cluster base-pod": Outcome.FAIL, f"default security group of {_VPC}": Outcome.FAIL}
