"""`training-cluster preflight` on the local AWS: from a bare account to one that is ready."""

import json
from datetime import UTC, datetime
from pathlib import Path

import pytest

from cdk_training_cluster_cli.core.output import json_text
from cdk_training_cluster_cli.prepare.init.command import Given, Zones
from cdk_training_cluster_cli.prepare.init.command import run as init
from cdk_training_cluster_cli.prepare.preflight.checks import Aws, Line, Outcome, exit_status, run_checks
from cdk_training_cluster_cli.prepare.preflight.command import checks_of, run, values
from cdk_training_cluster_cli.prepare.preflight.needs import Needs, needs_of
from cdk_training_cluster_file import read_cluster_file
from examples import PROJECT
from local_aws import LocalAws

_FILE = PROJECT / "clusters/spot-elastic.yaml"
_P, _G = "L-417A185B", "L-DB2E81BA"


@pytest.fixture(scope="module")
def needs() -> Needs:
    return needs_of(str(_FILE), read_cluster_file(_FILE))


def _asked(needs: Needs, user: Aws) -> dict[str, Line]:
    return {line.name: line for line in run_checks(checks_of(needs, datetime.now(UTC)), user)}


def _not_passed(lines: dict[str, Line]) -> dict[str, Outcome]:
    return {name: line.outcome for name, line in lines.items() if line.outcome is not Outcome.PASS}


def test_an_account_becomes_ready(aws: LocalAws, needs: Needs, user: Aws, capsys: pytest.CaptureFixture[str]) -> None:
    bare = _asked(needs, user)
    assert _not_passed(bare) == {
        "service-linked role of spot.amazonaws.com": Outcome.FAIL,
        "service-linked role of spotfleet.amazonaws.com": Outcome.FAIL,
        "permissions of the deploying role": Outcome.UNKNOWN,
        "CDK bootstrap": Outcome.FAIL,
    }
    assert run(_FILE) == 1
    assert "aws iam create-service-linked-role --aws-service-name spotfleet.amazonaws.com" in capsys.readouterr().out

    # What the lines above name, and what `cdk bootstrap` makes.
    iam, trust = aws.client("iam"), json.dumps({"Version": "2012-10-17", "Statement": []})
    for service in ("spot", "spotfleet"):
        iam.create_service_linked_role(AWSServiceName=f"{service}.amazonaws.com")
    for name in ("AWSServiceRoleForEC2Spot", "AWSServiceRoleForEC2SpotFleet"):
        if not _exists(aws, name):  # moto names them otherwise than AWS
            iam.create_role(RoleName=name, AssumeRolePolicyDocument=trust)
    executor = f"cdk-hnb659fds-cfn-exec-role-{aws.account}-{aws.region}"
    iam.create_role(RoleName=executor, AssumeRolePolicyDocument=trust)
    aws.client("ssm").put_parameter(Name="/cdk-bootstrap/hnb659fds/version", Value="21", Type="String")
    ready = _asked(needs, user)
    assert _not_passed(ready) == {}
    assert exit_status(list(ready.values())) == 0

    aws.set_quota("ec2", _G, 383)
    short = _asked(needs, user)
    assert set(_not_passed(short)) == {f"quota {_G}, Running On-Demand G and VT instances"}
    assert exit_status(list(short.values())) == 1
    aws.set_quota("ec2", _G, 10_000)

    aws.fail("DescribeImages", "UnauthorizedOperation", times=None)
    aws.fail("GetServiceQuota", "AccessDeniedException", times=None)
    told = json.loads(json_text(values(needs, user, list(_asked(needs, user).values()))))
    assert told["outcome"] == "unknown"
    mends = {each["mend"] for each in told["checks"] if each["outcome"] == "unknown"}
    assert mends == {
        "allow ec2:DescribeImages for your credentials",
        "allow servicequotas:GetServiceQuota for your credentials",
    }


def _exists(aws: LocalAws, role: str) -> bool:
    return any(each["RoleName"] == role for each in aws.client("iam").list_roles()["Roles"])


def test_it_only_reads_and_asks_for_no_more_than_its_page_says(aws: LocalAws, needs: Needs, user: Aws) -> None:
    aws.forget_calls()
    _asked(needs, user)
    page = (PROJECT / "docs/commands/beginning.md").read_text(encoding="utf-8")
    asked = {user.action(call.operation) for call in aws.calls()}
    assert {action for action in asked if f"`{action}`" not in page} == set()
    verbs = ("Describe", "Get", "List", "Simulate")
    assert all(action.partition(":")[2].startswith(verbs) for action in asked)


@pytest.mark.usefixtures("user")
def test_init_live_takes_a_zone_that_has_the_type(tmp_path: Path) -> None:
    live, file = Zones(profile=None, live=True), tmp_path / "llama.yaml"
    offered = live.of(["p4de.24xlarge"], "us-east-1")["p4de.24xlarge"]
    init(file, Given(instance_type="p4de.24xlarge"), zones=live)
    assert read_cluster_file(file).availability_zone == offered[0]
    with pytest.raises(ValueError, match=f"--availability-zone must be {offered[0]} or .*, got us-east-1z"):
        init(file, Given(instance_type="p4de.24xlarge", zone="us-east-1z"), zones=live, force=True)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"region": "us-west-2"}, "--region must be us-east-1, which follows from availability_zone: us-east-1b"),
        ({"output": "yaml"}, "--output must be table or json, got 'yaml'"),
    ],
)
def test_what_cannot_be_used_is_refused_first(options: dict[str, str], said: str) -> None:
    with pytest.raises(ValueError, match="must be") as error:
        run(_FILE, **options)
    assert str(error.value).startswith(said)
