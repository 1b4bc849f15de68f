"""`WeeklyCostReport`: made where a budget asks for it, with a policy that is enough and no more."""

from aws_cdk import aws_sns as sns
from aws_cdk.assertions import Template

from cdk_training_cluster import ClusterState, WeeklyCostReport
from cost_scene import CLUSTER, TOPIC, TUESDAY, CostScene
from fake_dynamodb import TABLE
from fake_service import ACCOUNT, REGION
from policy_evaluator import Call, is_allowed, role_statements, unused
from synthesis import new_stack, only

_LOGS = f"arn:aws:logs:{REGION}:{ACCOUNT}:log-group:costs"
_QUEUE = f"arn:aws:sqs:{REGION}:{ACCOUNT}:failed-events"
_TABLE = f"arn:aws:dynamodb:{REGION}:{ACCOUNT}:table/{TABLE}"
_LAMBDA_CALLS = [
    *(Call(action=f"logs:{verb}", resource=f"{_LOGS}:log-stream:1") for verb in ("CreateLogStream", "PutLogEvents")),
    Call(action="sqs:SendMessage", resource=_QUEUE),
]


def test_its_policy_is_enough_and_ends_at_its_part_of_the_state() -> None:
    stack = new_stack()
    topic, state = sns.Topic(stack, "Alerts"), ClusterState(stack, "State")
    WeeklyCostReport(stack, "Report", cluster_name=CLUSTER, alert_topic=topic, state=state)
    template = Template.from_stack(stack).to_json()
    of_type = {one["Type"]: name for name, one in template["Resources"].items()}
    role = only(stack, "AWS::Lambda::Function")["Properties"]["Role"]["Fn::GetAtt"][0]
    statements = role_statements(
        template,
        role,
        {
            "AWS::Partition": "aws",
            "AWS::Region": REGION,
            "AWS::AccountId": ACCOUNT,
            of_type["AWS::SNS::Topic"]: TOPIC,
            f"{of_type['AWS::DynamoDB::Table']}.Arn": _TABLE,
            f"{of_type['AWS::Logs::LogGroup']}.Arn": f"{_LOGS}:*",
            f"{of_type['AWS::SQS::Queue']}.Arn": _QUEUE,
        },
    )
    scene = CostScene()
    scene.run(TUESDAY)
    in_govcloud = {"aws:RequestedRegion": "us-gov-west-1"}
    calls = [*scene.calls, *_LAMBDA_CALLS, Call(action="ce:GetCostAndUsage", resource="*", context=in_govcloud)]
    assert [call for call in calls if not is_allowed(statements, call)] == []
    assert unused(statements, calls) == [f"dynamodb:Query on {_TABLE}"]
    foreign = CostScene(cluster="other")
    foreign.run(TUESDAY)
    assert not [call for call in foreign.dynamodb.calls if is_allowed(statements, call)]
