"""`CheckpointWatch`: a policy that is enough for its function's calls, and no more."""

from dataclasses import replace

from aws_cdk import aws_sns as sns
from aws_cdk.assertions import Template

from cdk_training_cluster import CheckpointWatch
from checkpoint_scene import BUCKET, CheckpointScene, exported_checkpoints
from fake_service import ACCOUNT, REGION
from policy_evaluator import Call, is_allowed, role_statements, unused
from synthesis import new_stack, only

_LOGS = f"arn:aws:logs:{REGION}:{ACCOUNT}:log-group:checkpoints"
_QUEUE = f"arn:aws:sqs:{REGION}:{ACCOUNT}:failed-events"
_TOPIC = f"arn:aws:sns:{REGION}:{ACCOUNT}:alerts"
_LAMBDA_CALLS = [
    *(Call(action=f"logs:{verb}", resource=f"{_LOGS}:log-stream:1") for verb in ("CreateLogStream", "PutLogEvents")),
    Call(action="sqs:SendMessage", resource=_QUEUE),
]


def test_its_policy_lets_it_list_one_prefix_of_one_bucket_and_read_metrics() -> None:
    stack = new_stack()
    topic = sns.Topic(stack, "Alerts")
    store = exported_checkpoints(stack, prefix="runs")
    CheckpointWatch(stack, "Watch", cluster_name="pod", checkpoints=store, alert_topic=topic)
    template = Template.from_stack(stack).to_json()
    of_type = {
        one["Type"]: name for name, one in template["Resources"].items() if not name.startswith("FilesNetwork")
    }
    role = only(stack, "AWS::Lambda::Function")["Properties"]["Role"]["Fn::GetAtt"][0]
    statements = role_statements(
        template,
        role,
        {
            "AWS::Region": REGION,
            of_type["AWS::SNS::Topic"]: _TOPIC,
            f"{of_type['AWS::S3::Bucket']}.Arn": f"arn:aws:s3:::{BUCKET}",
            f"{of_type['AWS::Logs::LogGroup']}.Arn": f"{_LOGS}:*",
            f"{of_type['AWS::SQS::Queue']}.Arn": _QUEUE,
        },
    )
    scene = CheckpointScene()
    scene.run()
    # IAM knows the call ListObjectsV2 as ListBucket.
    # https://docs.aws.amazon.com/AmazonS3/latest/API/API_ListObjectsV2.html
    calls = [
        *(replace(call, action="s3:ListBucket") for call in scene.bucket.calls),
        *scene.cloudwatch.calls,
        *_LAMBDA_CALLS,
    ]
    assert [call for call in calls if not is_allowed(statements, call)] == []
    # Its alarms notify the topic, and every guardrail may.
    assert unused(statements, calls) == [f"sns:Publish on {_TOPIC}"]
    runs = {"s3:prefix": "runs/"}
    assert not is_allowed(statements, Call(action="s3:ListBucket", resource="arn:aws:s3:::other", context=runs))
    # A listing of everything and HeadBucket have no prefix.
    for prefix in ({"s3:prefix": "corpora/"}, {"s3:prefix": "runs"}, {"s3:prefix": ""}, {}):
        call = Call(action="s3:ListBucket", resource=f"arn:aws:s3:::{BUCKET}", context=prefix)
        assert not is_allowed(statements, call)
    assert not is_allowed(statements, Call(action="s3:GetObject", resource=f"arn:aws:s3:::{BUCKET}/runs/a"))
