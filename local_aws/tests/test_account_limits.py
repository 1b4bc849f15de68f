"""What an account may have: quotas that can be steered, Lambda's concurrency, and IAM's simulator."""

import pytest
from botocore.exceptions import ClientError

from local_aws import LocalAws

_DESIRED = {"ServiceCode": "ec2", "QuotaCode": "L-417A185B"}


def test_a_quota_is_what_a_test_grants(aws: LocalAws) -> None:
    quotas = aws.client("service-quotas")
    granted = quotas.get_service_quota(**_DESIRED)["Quota"]["Value"]
    aws.set_quota("ec2", "L-417A185B", 96)
    assert quotas.get_service_quota(**_DESIRED)["Quota"]["Value"] == 96
    assert quotas.get_aws_default_service_quota(**_DESIRED)["Quota"]["Value"] == 96
    aws.set_quota("ec2", "L-417A185B", granted)
    with pytest.raises(ClientError) as refused:
        quotas.get_service_quota(ServiceCode="ec2", QuotaCode="L-00000000")
    assert refused.value.response["Error"]["Code"] == "NoSuchResourceException"


def test_what_functions_reserve_is_no_longer_unreserved(aws: LocalAws) -> None:
    limit = aws.client("lambda").get_account_settings()["AccountLimit"]
    assert limit["UnreservedConcurrentExecutions"] <= limit["ConcurrentExecutions"] == 1000


def test_the_simulator_knows_who_exists(aws: LocalAws) -> None:
    iam, role = aws.client("iam"), "arn:aws:iam::123456789012:role/nobody"
    with pytest.raises(ClientError) as refused:
        iam.simulate_principal_policy(PolicySourceArn=role, ActionNames=["ec2:CreateVpc"])
    assert refused.value.response["Error"]["Code"] == "NoSuchEntity"
    user = aws.client("sts").get_caller_identity()["Arn"]
    (result,) = iam.simulate_principal_policy(PolicySourceArn=user, ActionNames=["ec2:CreateVpc"])[
        "EvaluationResults"
    ]
    assert (result["EvalActionName"], result["EvalDecision"]) == ("ec2:CreateVpc", "allowed")


def test_an_unknown_bucket_is_not_found(aws: LocalAws) -> None:
    with pytest.raises(ClientError) as refused:
        aws.client("s3").head_bucket(Bucket="nobody-has-this")
    assert refused.value.response["Error"]["Code"] == "404"
