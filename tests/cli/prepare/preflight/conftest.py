"""A local AWS of their own: it is a bare account at first."""

from collections.abc import Iterator

import boto3
import pytest

from cdk_training_cluster_cli.prepare.preflight.checks import Aws
from local_aws import LocalAws
from local_aws_scene import aws

__all__ = ["aws"]


@pytest.fixture
def user(aws: LocalAws, monkeypatch: pytest.MonkeyPatch) -> Iterator[Aws]:
    for name, value in aws.environment().items():
        if name.startswith("AWS_"):
            monkeypatch.setenv(name, value)
    session = boto3.Session()
    caller = session.client("sts", region_name=aws.region).get_caller_identity()
    yield Aws(session=session, region=aws.region, account=caller["Account"], caller=caller["Arn"])
    aws.clear_faults()
