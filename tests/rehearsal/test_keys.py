"""What AWS's services do when a key's policy does not let them use it."""

import json
from typing import Any

import pytest
from botocore.exceptions import ClientError

from cdk_training_cluster.core.encryption import KeyPlace, KeyUser, key_policy
from function_scene import made_function
from local_aws import LocalAws

_PLACE = KeyPlace(account="123456789012", region="us-east-1", partition="aws", url_suffix="amazonaws.com")


def _key(aws: LocalAws, *users: KeyUser) -> str:
    policy = json.dumps(key_policy(_PLACE, *users))
    return str(aws.client("kms").create_key(Policy=policy)["KeyMetadata"]["Arn"])


def _log_group(aws: LocalAws, key: str) -> None:
    aws.client("logs").create_log_group(logGroupName=f"logs-{key[-12:]}", kmsKeyId=key)


def _alarm(aws: LocalAws, key: str) -> None:
    topic = aws.client("sns").create_topic(Name=f"topic-{key[-12:]}", Attributes={"KmsMasterKeyId": key})["TopicArn"]
    aws.client("cloudwatch").put_metric_alarm(
        AlarmName="alarm",
        AlarmActions=[topic],
        Namespace="n",
        MetricName="m",
        Statistic="Sum",
        Period=60,
        EvaluationPeriods=1,
        Threshold=1,
        ComparisonOperator="GreaterThanThreshold",
    )


@pytest.mark.parametrize(
    ("user", "use", "refusal"),
    [
        (KeyUser.LOGS, _log_group, "does not exist or is not allowed to be used with Arn"),
        (KeyUser.ALARMS, _alarm, "does not have authorization to access the SNS topic encryption key"),
    ],
    ids=["logs", "alarms"],
)
def test_a_service_uses_a_key_whose_policy_names_it_alone(
    aws: LocalAws, user: KeyUser, use: Any, refusal: str
) -> None:
    use(aws, _key(aws, user))
    others = [other for other in KeyUser if other is not user]
    for key in (_key(aws), _key(aws, *others)):
        with pytest.raises(ClientError, match=refusal):
            use(aws, key)


def test_a_disabled_key_is_of_no_use(aws: LocalAws) -> None:
    key = _key(aws, KeyUser.LOGS)
    aws.client("kms").disable_key(KeyId=key.rpartition("/")[2])
    with pytest.raises(ClientError, match="is not allowed to be used"):
        _log_group(aws, key)


@pytest.mark.parametrize("user", [KeyUser.AUTO_SCALING, None], ids=["named", "not named"])
def test_auto_scaling_launches_onto_volumes_whose_key_names_its_role(aws: LocalAws, user: KeyUser | None) -> None:
    ec2, name = aws.client("ec2"), f"group-{user and user.name.lower()}"
    key = _key(aws, *([user] if user else []))
    image = ec2.describe_images(Filters=[{"Name": "architecture", "Values": ["x86_64"]}])["Images"][0]["ImageId"]
    data = {
        "ImageId": image,
        "InstanceType": "t3.micro",
        "BlockDeviceMappings": [{"DeviceName": "/dev/xvda", "Ebs": {"Encrypted": True, "KmsKeyId": key}}],
    }
    ec2.create_launch_template(LaunchTemplateName=name, LaunchTemplateData=data)
    auto_scaling = aws.client("autoscaling")
    auto_scaling.create_auto_scaling_group(
        AutoScalingGroupName=name,
        LaunchTemplate={"LaunchTemplateName": name, "Version": "1"},
        MinSize=0,
        MaxSize=1,
        DesiredCapacity=1,
        AvailabilityZones=["us-east-1a"],
    )
    [group] = auto_scaling.describe_auto_scaling_groups(AutoScalingGroupNames=[name])["AutoScalingGroups"]
    activity = auto_scaling.describe_scaling_activities(AutoScalingGroupName=name)["Activities"][0]
    assert len(group["Instances"]) == (1 if user else 0)
    assert ("Client.InternalError" in activity.get("StatusMessage", "")) is (user is None)
    auto_scaling.delete_auto_scaling_group(AutoScalingGroupName=name, ForceDelete=True)


def test_a_function_needs_its_role_to_decrypt_its_environment(aws: LocalAws) -> None:
    handler = "def handler(event, context): return 1"
    sealed = made_function(aws, "sealed", handler, {"SETTING": "b"}, KMSKeyArn=_key(aws))
    with sealed, pytest.raises(ClientError, match="KMS access was denied"):
        aws.client("lambda").invoke(FunctionName="sealed", Payload=b"{}")
