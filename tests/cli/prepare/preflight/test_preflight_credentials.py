"""What preflight says of the way to AWS STS, which gives nodes the credentials of their jobs."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import boto3
import pytest

from cdk_training_cluster_cli.prepare.preflight.checks import Aws, Outcome, run_checks
from cdk_training_cluster_cli.prepare.preflight.credentials import credential_checks, judge_sts
from cdk_training_cluster_cli.prepare.preflight.needs import needs_of
from cdk_training_cluster_file import read_cluster_file
from examples import PROJECT
from local_aws import LocalAws
from rehearsal.preparation import account_of, prepare

_FILE = PROJECT / "clusters/existing-vpc.yaml"
_SUBNET = "subnet-0a1b2c3d"
_STS = {"ServiceName": "com.amazonaws.us-east-1.sts", "PrivateDnsEnabled": True, "VpcEndpointId": "vpce-1"}


def _table(destination: str, state: str = "active", **link: Any) -> dict[str, Any]:
    routes = [{"DestinationCidrBlock": "10.0.0.0/16", "GatewayId": "local", "State": "active"}]
    return {
        "RouteTableId": "rtb-1",
        "Associations": [link],
        "Routes": [*routes, {"DestinationCidrBlock": destination, "NatGatewayId": "nat-1", "State": state}],
    }


@pytest.mark.parametrize(
    ("tables", "endpoints", "outcome", "said"),
    [
        ([_table("0.0.0.0/0", SubnetId=_SUBNET)], [], Outcome.PASS, "has a default route"),
        ([_table("0.0.0.0/0", Main=True)], [], Outcome.PASS, "has a default route"),
        ([_table("192.0.2.0/24", SubnetId=_SUBNET), _table("0.0.0.0/0", Main=True)], [], Outcome.FAIL, "no default"),
        ([_table("0.0.0.0/0", "blackhole", SubnetId=_SUBNET)], [], Outcome.FAIL, "so that jobs get no credentials"),
        ([_table("192.0.2.0/24", Main=True)], [_STS], Outcome.PASS, "has the endpoint vpce-1 for AWS STS"),
        ([_table("192.0.2.0/24", Main=True)], [{**_STS, "PrivateDnsEnabled": False}], Outcome.FAIL, "private DNS"),
        (
            [_table("192.0.2.0/24", Main=True)],
            [{**_STS, "ServiceName": "com.amazonaws.us-east-1.ec2"}],
            Outcome.FAIL,
            "aws ec2 create-vpc-endpoint --vpc-endpoint-type Interface --private-dns-enabled --service-name "
            f"com.amazonaws.us-east-1.sts --subnet-ids {_SUBNET}",
        ),
        ([], [_STS], Outcome.UNKNOWN, "no route table"),
    ],
)
def test_nodes_reach_aws_sts_by_a_default_route_or_an_endpoint(
    tables: list[dict[str, Any]], endpoints: list[dict[str, Any]], outcome: Outcome, said: str
) -> None:
    verdict = judge_sts(_SUBNET, "us-east-1", (tables, endpoints))
    assert (verdict.outcome, said in f"{verdict.said} -> {verdict.mend}") == (outcome, True)


@pytest.fixture
def user(tmp_path: Path) -> Iterator[Aws]:
    """The account of the example, in the local AWS."""
    file = read_cluster_file(_FILE)
    with LocalAws(tmp_path / "log.txt", account=account_of(file), region=file.region) as aws:
        prepare(file, aws)
        caller = f"arn:aws:iam::{aws.account}:user/me"
        key, secret = (aws.environment()[name] for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"))
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("AWS_ENDPOINT_URL", aws.endpoint_url)
            yield Aws(session=boto3.Session(key, secret), region=aws.region, account=aws.account, caller=caller)


def test_the_network_of_an_example_is_looked_at_and_that_of_a_cluster_of_its_own_is_not(user: Aws) -> None:
    needs = needs_of(str(_FILE), read_cluster_file(_FILE))
    (line,) = run_checks(list(credential_checks(needs)), user)
    assert (line.name.startswith("AWS STS from subnet-"), line.outcome) == (True, Outcome.PASS)
    for name in ("base-pod", "hyperpod-eks"):
        file = PROJECT / f"clusters/{name}.yaml"
        assert list(credential_checks(needs_of(str(file), read_cluster_file(file)))) == []
