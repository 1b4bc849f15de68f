"""Who may take a role of the local AWS, and for how long."""

import json
from collections.abc import Iterator, Mapping
from typing import Any

import boto3
import pytest
from botocore.exceptions import ClientError

from local_aws import LocalAws

_ACCOUNT = "arn:aws:iam::123456789012:root"
_EC2 = {"Service": "ec2.amazonaws.com"}
_NODES = {"AWS": "arn:aws:iam::123456789012:role/nodes"}


def _document(**statement: Any) -> str:
    return json.dumps({"Version": "2012-10-17", "Statement": [{"Effect": "Allow", **statement}]})


@pytest.fixture
def roles(aws: LocalAws) -> Iterator[Any]:
    """A client of IAM, and a role of nodes that may take any role that begins with jobs."""
    iam = aws.client("iam")
    there = {role["RoleName"] for role in iam.list_roles()["Roles"]}
    iam.create_role(RoleName="nodes", AssumeRolePolicyDocument=_document(Principal=_EC2, Action="sts:AssumeRole"))
    may = _document(Action="sts:AssumeRole", Resource="arn:aws:iam::123456789012:role/jobs*")
    iam.put_role_policy(RoleName="nodes", PolicyName="jobs", PolicyDocument=may)
    yield iam
    iam.delete_role_policy(RoleName="nodes", PolicyName="jobs")
    for name in {role["RoleName"] for role in iam.list_roles()["Roles"]} - there:
        iam.delete_role(RoleName=name)


def _node(aws: LocalAws) -> Any:
    """Return a client of STS with the credentials that EC2 gave an instance."""
    given = aws.instance_credentials("nodes", "i-0a1b2c3d")
    own = aws.client("sts").meta
    return boto3.client(
        "sts",
        region_name=own.region_name,
        endpoint_url=own.endpoint_url,
        aws_access_key_id=given["AccessKeyId"],
        aws_secret_access_key=given["SecretAccessKey"],
        aws_session_token=given["SessionToken"],
    )


@pytest.mark.parametrize(
    ("name", "principal", "nodes", "account"),
    [
        ("jobs", _NODES, True, False),
        ("jobs-of-services", _EC2, False, False),
        ("jobs-of-others", {"AWS": "arn:aws:iam::123456789012:role/others"}, False, False),
        ("jobs-of-account", {"AWS": _ACCOUNT}, True, True),
        ("jobs-of-number", {"AWS": "123456789012"}, True, True),
        ("others", _NODES, False, False),
    ],
)
def test_a_role_is_taken_by_whom_its_trust_policy_names_and_whose_own_policy_allows_it(
    aws: LocalAws, roles: Any, name: str, principal: Mapping[str, str], *, nodes: bool, account: bool
) -> None:
    trusted = _document(Principal=principal, Action="sts:AssumeRole")
    arn = roles.create_role(RoleName=name, AssumeRolePolicyDocument=trusted)["Role"]["Arn"]
    assert {"nodes": _takes(_node(aws), arn), "account": _takes(aws.client("sts"), arn)} == {
        "nodes": nodes,
        "account": account,
    }


def _takes(client: Any, arn: str) -> bool:
    try:
        given = client.assume_role(RoleArn=arn, RoleSessionName="i-0a1b2c3d")
    except ClientError as error:
        if error.response["Error"]["Code"] == "AccessDenied" and f"sts:AssumeRole on resource: {arn}" in str(error):
            return False
        raise
    return bool(given["AssumedRoleUser"]["Arn"].endswith("/i-0a1b2c3d"))


def test_a_denial_goes_before_what_is_allowed(aws: LocalAws, roles: Any) -> None:
    deny = {"Effect": "Deny", "Principal": _NODES, "Action": "sts:*"}
    allow = {"Effect": "Allow", "Principal": {"AWS": _ACCOUNT}, "Action": "sts:AssumeRole"}
    document = json.dumps({"Version": "2012-10-17", "Statement": [deny, allow]})
    arn = roles.create_role(RoleName="jobs", AssumeRolePolicyDocument=document)["Role"]["Arn"]
    with pytest.raises(ClientError, match="AccessDenied"):
        _node(aws).assume_role(RoleArn=arn, RoleSessionName="i-0a1b2c3d")
    assert aws.client("sts").assume_role(RoleArn=arn, RoleSessionName="operator")["Credentials"]


def test_no_session_is_longer_than_its_role_allows_and_one_from_a_session_than_an_hour(
    aws: LocalAws, roles: Any
) -> None:
    trusted = _document(Principal={"AWS": _ACCOUNT}, Action="sts:AssumeRole")
    roles.create_role(RoleName="jobs", AssumeRolePolicyDocument=trusted, MaxSessionDuration=7200)
    role = {"RoleArn": "arn:aws:iam::123456789012:role/jobs", "RoleSessionName": "i-0a1b2c3d"}
    assert aws.client("sts").assume_role(**role, DurationSeconds=7200)["Credentials"]
    with pytest.raises(ClientError, match="exceeds the MaxSessionDuration set for this role"):
        aws.client("sts").assume_role(**role, DurationSeconds=7201)
    with pytest.raises(ClientError, match="1 hour session limit for roles assumed by role chaining"):
        _node(aws).assume_role(**role, DurationSeconds=3601)


def test_a_role_that_is_not_there_is_taken_by_nobody(aws: LocalAws) -> None:
    with pytest.raises(ClientError, match="AccessDenied"):
        aws.client("sts").assume_role(RoleArn="arn:aws:iam::123456789012:role/none", RoleSessionName="operator")
