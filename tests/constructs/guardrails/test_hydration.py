"""`DatasetHydration`: made where a data set asks for it, with a policy that is enough and ends at the cluster."""

from datetime import timedelta
from typing import Any

import pytest
from aws_cdk import Duration, Stack
from aws_cdk import aws_s3 as s3
from aws_cdk import aws_sns as sns
from aws_cdk.assertions import Template

from cdk_training_cluster import ClusterState, Dataset, DatasetHydration, NodeGroup, TrainingCluster
from cluster_contract.hydration import HydratedDataset, HydrationStep
from cost_scene import TOPIC
from fake_dynamodb import TABLE
from fake_lustre import FILE_SYSTEM
from fake_run_command import CLUSTER, DOCUMENT
from fake_service import ACCOUNT, REGION
from hydrated_files import hydrated_file_system
from hydration_scene import HydrationScene
from policy_evaluator import Call, is_allowed, role_statements, unused
from synthesis import ZONE, new_stack, only, resources

_LOGS = f"arn:aws:logs:{REGION}:{ACCOUNT}:log-group:hydration"
_QUEUE = f"arn:aws:sqs:{REGION}:{ACCOUNT}:failed-events"
_TABLE = f"arn:aws:dynamodb:{REGION}:{ACCOUNT}:table/{TABLE}"
_LAMBDA_CALLS = [
    *(Call(action=f"logs:{verb}", resource=f"{_LOGS}:log-stream:1") for verb in ("CreateLogStream", "PutLogEvents")),
    Call(action="sqs:SendMessage", resource=_QUEUE),
]
_NODE = f"arn:aws:ec2:{REGION}:{ACCOUNT}:instance/i-0"
_TAG = "aws:ResourceTag/cdk-training-cluster:cluster"


@pytest.fixture(scope="module")
def statements() -> list[dict[str, Any]]:
    """Return the statements of the function's role."""
    stack = new_stack()
    topic, state = sns.Topic(stack, "Alerts"), ClusterState(stack, "State")
    files = hydrated_file_system(stack)
    DatasetHydration(stack, "It", cluster_name=CLUSTER, alert_topic=topic, file_system=files, state=state)
    template = Template.from_stack(stack).to_json()
    of_type = {one["Type"]: name for name, one in template["Resources"].items()}
    role = only(stack, "AWS::Lambda::Function")["Properties"]["Role"]["Fn::GetAtt"][0]
    return role_statements(
        template,
        role,
        {
            "AWS::Partition": "aws",
            "AWS::Region": REGION,
            "AWS::AccountId": ACCOUNT,
            of_type["AWS::SNS::Topic"]: TOPIC,
            of_type["AWS::FSx::FileSystem"]: FILE_SYSTEM,
            of_type["AWS::SSM::Document"]: DOCUMENT,
            f"{of_type['AWS::DynamoDB::Table']}.Arn": _TABLE,
            f"{of_type['AWS::Logs::LogGroup']}.Arn": f"{_LOGS}:*",
            f"{of_type['AWS::SQS::Queue']}.Arn": _QUEUE,
        },
    )


def test_all_that_the_function_does_is_allowed_and_nothing_else(statements: list[dict[str, Any]]) -> None:
    released = HydratedDataset(path="/cold", release_after=timedelta(days=30))
    scene = HydrationScene(20, 2, HydratedDataset(path="/data", preload=True), released)
    scene.lustre.tasks[0]["Lifecycle"] = "FAILED"
    scene.until(HydrationStep.DONE)
    calls = [*scene.calls, *_LAMBDA_CALLS]
    assert [call for call in calls if not is_allowed(statements, call)] == []
    assert unused(statements, calls) == [f"dynamodb:Query on {_TABLE}"]


@pytest.mark.parametrize(
    ("action", "resource", "context"),
    [
        ("ssm:SendCommand", _NODE, {_TAG: "other"}),
        ("ssm:SendCommand", _NODE, {}),
        ("ssm:SendCommand", f"arn:aws:ssm:{REGION}::document/AWS-RunShellScript", {_TAG: CLUSTER}),
        ("ssm:PutParameter", f"arn:aws:ssm:{REGION}:{ACCOUNT}:parameter/training-cluster/other/hydration", {}),
        ("fsx:CreateDataRepositoryTask", f"arn:aws:fsx:{REGION}:{ACCOUNT}:file-system/fs-2", {}),
        ("fsx:DeleteDataRepositoryAssociation", "*", {}),
        ("dynamodb:PutItem", _TABLE, {"dynamodb:LeadingKeys": [f"power#{CLUSTER}"]}),
        ("dynamodb:PutItem", _TABLE, {"dynamodb:LeadingKeys": ["hydration#other"]}),
    ],
)
def test_nothing_else_can_be_reached(
    statements: list[dict[str, Any]], action: str, resource: str, context: dict[str, Any]
) -> None:
    assert not is_allowed(statements, Call(action=action, resource=resource, context=context))


def _cluster(stack: Stack, **settings: Any) -> TrainingCluster:
    bucket = s3.Bucket(stack, "Corpus")
    dataset = Dataset(bucket=bucket, file_system_path="/data", prefix="tokens", **settings)
    workers = NodeGroup("workers", instance_types=["g6.48xlarge"], count=2)
    return TrainingCluster(
        stack, "Pod", cluster_name=CLUSTER, availability_zone=ZONE, node_groups=[workers], datasets=[dataset]
    )


@pytest.mark.parametrize(
    ("settings", "documents", "says"),
    [
        ({}, None, []),
        ({"release_after": Duration.days(30)}, 0, ["Dataset /data: freed after 30 days"]),
        ({"preload": ["*.bin"]}, 1, ["Dataset /data: preloaded by the nodes"]),
    ],
)
def test_a_cluster_has_what_its_data_sets_ask_for(
    settings: dict[str, Any], documents: int | None, says: list[str]
) -> None:
    stack = new_stack()
    made = _cluster(stack, **settings).hydration
    assert (made is None) == (documents is None)
    assert ([] if made is None else list(made.describe())) == says
    found = [one["Properties"] for one in resources(stack, "AWS::SSM::Document").values()]
    commands = [one for one in found if one["DocumentType"] == "Command"]
    named = [one["Properties"].get("Name") for one in resources(stack, "AWS::SSM::Parameter").values()]
    assert len(commands) == named.count(f"/training-cluster/{CLUSTER}/hydration") == (documents or 0)
    assert ("ec2messages:GetMessages" in str(resources(stack, "AWS::IAM::Policy"))) == bool(documents)
    for document in commands:
        step = document["Content"]["mainSteps"][0]
        assert (document["UpdateMethod"], step["action"]) == ("NewVersion", "aws:runShellScript")
        command = "exec \"${ROOT:-}/usr/local/bin/cluster-node\" hydrate '{{ Request }}'"
        assert step["inputs"]["runCommand"] == [command]


def test_another_prefix_is_hydrated_anew_without_an_export_of_the_bucket() -> None:
    stack = new_stack()
    _cluster(stack, preload=True, preload_max_gib=5)
    function = only(stack, "AWS::Lambda::Function", {"Handler": "cluster_hydration.handler.handler"})
    settings = str(function["Properties"]["Environment"]["Variables"]["CLUSTER_HYDRATION_SETTINGS"])
    assert '"datasets":[{"max_gib":5,"path":"/data","preload":true,"source":"s3:///tokens/"}]' in settings
