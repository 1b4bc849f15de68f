"""The synthesized policy of the health function against the calls that it was seen to make."""

from typing import Any

from aws_cdk import aws_sns as sns
from aws_cdk.assertions import Template

from cdk_training_cluster import ClusterState, HealthPolicy, NodeHealth
from fake_dynamodb import TABLE
from fleet_scene import bought_each
from health_scene import REPLACE, HealthScene, aws_event, ids
from policy_evaluator import Call, is_allowed, role_statements, unused
from power_scene import CLUSTER, TOPIC
from synthesis import new_stack

ACCOUNT, REGION = "111122223333", "us-east-1"
LOGS = f"arn:aws:logs:{REGION}:{ACCOUNT}:log-group:health"
QUEUE = f"arn:aws:sqs:{REGION}:{ACCOUNT}:failed-events"
TABLE_ARN = f"arn:aws:dynamodb:{REGION}:{ACCOUNT}:table/{TABLE}"
# What Lambda does in the function's name.
LAMBDA_CALLS = [
    *(Call(action=f"logs:{verb}", resource=f"{LOGS}:log-stream:1") for verb in ("CreateLogStream", "PutLogEvents")),
    Call(action="sqs:SendMessage", resource=QUEUE),
]
# What readers of another part may ask, and this one does not; and what the adapter of the owner asks for others.
ELSEWHERE = {"dynamodb:GetItem", "autoscaling:DescribeScalingActivities", "autoscaling:DescribeWarmPool"}


def statements() -> list[dict[str, Any]]:
    stack = new_stack()
    topic, state = sns.Topic(stack, "Alerts"), ClusterState(stack, "State")
    fleets = [scene.fleet for scene in bought_each([{}], stack)]
    policy = HealthPolicy(act=True)
    NodeHealth(stack, "Health", cluster_name=CLUSTER, fleets=fleets, alert_topic=topic, policy=policy, state=state)
    template = Template.from_stack(stack).to_json()
    of_type = {(one["Type"], name.startswith("Health")): name for name, one in template["Resources"].items()}
    function = template["Resources"][of_type["AWS::Lambda::Function", True]]["Properties"]
    values = {
        "AWS::Partition": "aws",
        "AWS::Region": REGION,
        "AWS::AccountId": ACCOUNT,
        of_type["AWS::SNS::Topic", False]: TOPIC,
        f"{of_type['AWS::DynamoDB::Table', False]}.Arn": TABLE_ARN,
        f"{of_type['AWS::Logs::LogGroup', True]}.Arn": f"{LOGS}:*",
        f"{of_type['AWS::SQS::Queue', True]}.Arn": QUEUE,
    }
    return role_statements(template, function["Role"]["Fn::GetAtt"][0], values)


def story() -> HealthScene:
    """Return a cluster in which the function has done all that it can do."""
    scene = HealthScene()
    group = scene.start()
    first, second = ids(group)[:2]
    scene.fault(first)
    scene.drained(first)
    scene.both(2)
    scene.verified(first)
    scene.both(2)
    scene.dynamodb.before_next("PutItem", f"node/{second}", lambda: scene.fault(second, REPLACE))
    scene.fault(second, REPLACE)
    scene.both(20)
    retired = {"eventTypeCode": "AWS_EC2_INSTANCE_STORE_DRIVE_PERFORMANCE_DEGRADED", "eventTypeCategory": "issue"}
    scene.bring(aws_event("AWS Health Event", scene.now, affectedEntities=[{"entityValue": first}], **retired))
    return scene


def test_the_function_may_do_what_it_does_and_no_more() -> None:
    allowed, calls = statements(), story().health_calls
    assert sorted({call.action for call in calls if not is_allowed(allowed, call)}) == []
    found = unused(allowed, [*calls, *LAMBDA_CALLS])
    assert [one for one in found if one.partition(" ")[0] not in ELSEWHERE] == []
