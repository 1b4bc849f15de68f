"""The billing function in another region, where AWS refuses: the next run mends it, and no deletion is blocked."""

import io
import itertools
import json
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest
from botocore.exceptions import ClientError

from cdk_training_cluster.functions import function_source
from local_aws import LocalAws

HOME, BILLING = "us-west-2", "us-east-1"
_NUMBERS = itertools.count(1)
_TRUST = {"Effect": "Allow", "Action": "sts:AssumeRole", "Principal": {"Service": "lambda.amazonaws.com"}}


@dataclass
class Account:
    """A stack with the custom resource alone, and the function that it asks."""

    aws: LocalAws
    name: str
    stack: str = ""

    def deploy(self) -> None:
        """Make the function, and then the stack."""
        source, packed = function_source("billing_alarms"), io.BytesIO()
        with zipfile.ZipFile(packed, "w") as archive:
            for file in source.files:
                archive.write(source.root / file, file)
        trust = json.dumps({"Version": "2012-10-17", "Statement": [_TRUST]})
        role = self.aws.client("iam").create_role(RoleName=self.name, AssumeRolePolicyDocument=trust)["Role"]["Arn"]
        topic = self.aws.client("sns", HOME).create_topic(Name=self.name)["TopicArn"]
        settings = {
            "cluster": self.name,
            "prefix": f"{self.name}/{HOME}/billing-1a2b3c4d/",
            "monthly_usd": 1000,
            "thresholds": [50, 80, 100],
            "services": [],
            "accounts": [],
            "emails": ["ml@example.com"],
        }
        variables = {
            "BILLING_ALARMS_SETTINGS": json.dumps(settings),
            "ALERT_TOPIC_ARN": topic,
            "POWERTOOLS_METRICS_NAMESPACE": "CdkTrainingCluster/Functions",
            "POWERTOOLS_SERVICE_NAME": "billing_alarms",
        }
        arn = self.aws.client("lambda", HOME).create_function(
            FunctionName=self.name,
            Runtime="python3.13",
            Role=role,
            Timeout=240,
            Handler=source.handler,
            Code={"ZipFile": packed.getvalue()},
            Environment={"Variables": variables},
        )["FunctionArn"]
        removal = {"Type": "AWS::CloudFormation::CustomResource", "Properties": {"ServiceToken": arn}}
        self.stack = self.aws.client("cloudformation", HOME).create_stack(
            StackName=self.name, TemplateBody=json.dumps({"Resources": {"Removal": removal}})
        )["StackId"]

    def tick(self) -> dict[str, Any]:
        """Invoke the function, and return what it says."""
        answer = self.aws.client("lambda", HOME).invoke(FunctionName=self.name, Payload=b"{}")
        return dict(json.loads(answer["Payload"].read()))

    def delete(self) -> str:
        """Delete the stack, and return its status."""
        api = self.aws.client("cloudformation", HOME)
        api.delete_stack(StackName=self.name)
        return str(api.describe_stacks(StackName=self.stack)["Stacks"][0]["StackStatus"])

    @property
    def alarms(self) -> set[str]:
        """The ends of the names of the alarms there are."""
        found = self.aws.client("cloudwatch", BILLING).describe_alarms(AlarmNamePrefix=self.name)["MetricAlarms"]
        return {alarm["AlarmName"].rpartition("1a2b3c4d/")[2] for alarm in found}

    @property
    def topics(self) -> list[str]:
        """The topics of this budget in the region of the alarms."""
        topics = self.aws.client("sns", BILLING).list_topics()["Topics"]
        return [topic["TopicArn"] for topic in topics if f":{self.name}-{HOME}-billing" in topic["TopicArn"]]

    def clean_up(self) -> None:
        """Take away what a fault has left."""
        self.aws.clear_faults()
        self.aws.client("cloudformation", HOME).delete_stack(StackName=self.name)
        self.aws.client("lambda", HOME).delete_function(FunctionName=self.name)
        self.aws.client("iam").delete_role(RoleName=self.name)
        for name in self.alarms:
            alarm = f"{self.name}/{HOME}/billing-1a2b3c4d/{name}"
            self.aws.client("cloudwatch", BILLING).delete_alarms(AlarmNames=[alarm])
        for topic in self.topics:
            self.aws.client("sns", BILLING).delete_topic(TopicArn=topic)


@pytest.fixture
def account(aws: LocalAws) -> Iterator[Account]:
    made = Account(aws, f"bill-{next(_NUMBERS)}")
    made.deploy()
    yield made
    made.clean_up()


def test_what_a_refused_run_left_half_made_the_next_one_finishes(account: Account) -> None:
    assert (account.alarms, account.topics) == (set(), [])
    account.aws.fail("PutMetricAlarm", "AccessDenied", match="total/80")

    failed = account.tick()

    assert failed["errorType"] == "PartialFailureError"
    assert "total/80: could not create (AccessDenied: It fails on order.)" in failed["errorMessage"]
    assert account.alarms == {"total/50", "total/100"}
    account.tick()
    assert account.alarms == {"total/50", "total/80", "total/100"}
    assert account.delete() == "DELETE_COMPLETE"
    assert (account.alarms, account.topics) == (set(), [])


def test_a_refused_removal_blocks_no_deletion_and_is_told(account: Account) -> None:
    account.tick()
    account.aws.fail("DeleteAlarms", "AccessDenied", times=None)
    account.aws.forget_calls()

    assert account.delete() == "DELETE_COMPLETE"
    assert account.alarms == {"total/50", "total/80", "total/100"}
    told = {call.parameters["TopicArn"]: call.parameters["Message"] for call in account.aws.calls("Publish")}
    message = told[account.topics[0]]
    assert set(told.values()) == {message}
    # The alert topic, and the budget's own.
    assert [arn.split(":")[3] for arn in sorted(told)] == [BILLING, HOME]
    assert "the alarms could not be removed (AccessDenied" in message
    assert f"start with {account.name}/{HOME}/billing-1a2b3c4d/" in message
    # A tick that waited is not run.
    account.aws.clear_faults()
    with pytest.raises(ClientError, match="TooManyRequestsException"):
        account.tick()
