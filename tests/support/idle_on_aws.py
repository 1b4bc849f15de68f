"""A cluster on the local AWS that the idle function works on: real refusals, and a record of every call."""

import io
import json
import os
import zipfile
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any, cast

from aws_lambda_powertools import Logger

from cdk_training_cluster.functions import function_source
from cluster_common.actions import Action
from cluster_common.clients import Clients
from cluster_contract.idle import IdleFunctionSettings, Policy
from cluster_contract.state import StateAttribute
from cluster_idle.idle import Idle
from idle_function_settings import Group, idle_settings
from local_aws import LocalAws, sessions
from local_aws_scene import X86_IMAGE
from policy_evaluator import Call

# The construct sets it; the function's metrics are nowhere without it.
os.environ.setdefault("POWERTOOLS_METRICS_NAMESPACE", "CdkTrainingCluster/Functions")

CLUSTER_TAG, NODE_GROUP_TAG = "cdk-training-cluster:cluster", "cdk-training-cluster:node-group"
GROUP = "workers"
TYPE = "g5.xlarge"
ZONE = "us-east-1b"

_PERIOD = timedelta(minutes=5)
_WRITES = {"StopInstances", "CreateTags", "DeleteTags", "CreateOrUpdateTags", "Invoke"}


class IdleOnAws:
    """A cluster on the local AWS, its metrics, and the function that looks for idle nodes.

    Attributes:
        name: The cluster's name.
        now: The time of the first run.
    """

    def __init__(self, aws: LocalAws, name: str) -> None:
        """Begin with an empty cluster."""
        self.aws, self.name = aws, name
        self.now = datetime.now(UTC).replace(second=30, microsecond=0)
        self.policy = Policy()
        self.topic = aws.client("sns").create_topic(Name=f"{name}-alerts")["TopicArn"]
        self.power: str | None = None
        self.stack = ""
        self.table = f"{name}-state"
        keys = {StateAttribute.PART: "HASH", StateAttribute.NAME: "RANGE"}
        aws.client("dynamodb").create_table(
            TableName=self.table,
            KeySchema=[{"AttributeName": str(key), "KeyType": kind} for key, kind in keys.items()],
            AttributeDefinitions=[{"AttributeName": str(key), "AttributeType": "S"} for key in keys],
            BillingMode="PAY_PER_REQUEST",
        )
        self.pauses: list[float] = []
        self._launched: list[str] = []
        self._clients: dict[str, Any] = {}
        self._made: list[tuple[str, str, Mapping[str, Any]]] = []
        exports = aws.client("cloudformation").list_exports()["Exports"]
        self._subnet = next(each["Value"] for each in exports if each["Name"] == "test-Subnet")
        self._image = str(aws.client("ssm").get_parameter(Name=X86_IMAGE)["Parameter"]["Value"])

    def launch(self, count: int = 1, load: float | None = 0.0, cluster: str | None = None, **data: Any) -> list[str]:
        """Launch instances that nothing owns, and let them report an hour and more of a load.

        Args:
            count: How many.
            load: Percent of utilization. None: they report nothing.
            cluster: The cluster whose tag they carry. Default: - this one.
            **data: More of RunInstances.
        """
        tags = [{"Key": CLUSTER_TAG, "Value": cluster or self.name}]
        answer = self.aws.client("ec2").run_instances(
            **{
                "ImageId": self._image,
                "InstanceType": TYPE,
                "SubnetId": self._subnet,
                "TagSpecifications": [{"ResourceType": "instance", "Tags": tags}],
                "MinCount": count,
                "MaxCount": count,
                **data,
            }
        )
        ids = [instance["InstanceId"] for instance in answer["Instances"]]
        self._launched += ids
        self._report(ids, load)
        return ids

    def add_group(self, count: int = 2, load: float | None = 0.0) -> list[str]:
        """Deploy a node group with the power function that owns its size, and start it."""
        tags = {CLUSTER_TAG: self.name, NODE_GROUP_TAG: GROUP}
        launch = {"ImageId": self._image, "InstanceType": TYPE}
        group = {
            "AutoScalingGroupName": f"{self.name}-asg",
            "LaunchTemplate": {"LaunchTemplateId": {"Ref": "Launch"}, "Version": "1"},
            "MinSize": "0",
            "MaxSize": str(count),
            "VPCZoneIdentifier": [self._subnet],
            "Tags": [{"Key": key, "Value": value, "PropagateAtLaunch": True} for key, value in tags.items()],
        }
        resources = {
            "Launch": {"Type": "AWS::EC2::LaunchTemplate", "Properties": {"LaunchTemplateData": launch}},
            "Nodes": {"Type": "AWS::AutoScaling::AutoScalingGroup", "Properties": group},
        }
        self.stack = self.aws.client("cloudformation").create_stack(
            StackName=self.name, TemplateBody=json.dumps({"Resources": resources})
        )["StackId"]
        self._make_power_function(count)
        self.order("start")
        ids = self.running(GROUP)
        self._report(ids, load)
        return ids

    def order(self, action: str) -> dict[str, Any]:
        """Order something of the power function, and return what it says of the node group."""
        answer = self.aws.client("lambda").invoke(
            FunctionName=self.power,
            Qualifier="$LATEST" if action == "tick" else "operate",
            Payload=json.dumps({"action": action}).encode(),
        )
        told = json.loads(answer["Payload"].read())
        assert "FunctionError" not in answer, told
        (group,) = told["node_groups"]
        return dict(group)

    def run(self, *, after: int = 0) -> dict[str, dict[str, Any]]:
        """Run the function and return what it says of each node.

        Args:
            after: How many minutes after the first run it is.
        """
        clients = cast("Any", Clients)(
            ec2=lambda: self.client("ec2"),
            cloudwatch=lambda: self.client("cloudwatch"),
            auto_scaling=lambda: self.client("autoscaling"),
            dynamodb=lambda: self.client("dynamodb"),
            lambda_=lambda: self.client("lambda"),
            sns=lambda: self.client("sns"),
            ssm=lambda: self.client("ssm"),
            pause=self.pauses.append,
        )
        now = self.now + timedelta(minutes=after)
        function = Idle(self.settings, clients, Logger(service="test"), clock=lambda: now)
        summary: Any = function.run(Action.TICK)
        return {node["instance_id"]: node for node in summary["nodes"]}

    def client(self, service: str) -> Any:
        """Return the function's own client of a service, whose calls are kept."""
        if service not in self._clients:
            made = sessions.client(service, self.aws.endpoint_url, self.aws.region)
            made.meta.events.register(f"provide-client-params.{service}.*", self._keep)
            self._clients[service] = made
        return self._clients[service]

    def _keep(self, params: Mapping[str, Any], model: Any, **_: object) -> None:
        self._made.append((model.service_model.service_name, model.name, params))

    @property
    def settings(self) -> IdleFunctionSettings:
        """The settings that the deployment gives the function."""
        return idle_settings(
            cluster=self.name,
            policy=self.policy,
            groups={GROUP: Group(policy=self.policy)} if self.power else {},
            region="us-east-1",
            topic_arn=self.topic,
            state_table=self.table,
            stack_id=self.stack,
            power_function=self.power,
        )

    def states(self, ids: Iterable[str]) -> list[str]:
        """Return the states of instances."""
        found = {
            instance["InstanceId"]: instance["State"]["Name"]
            for reservation in self.aws.client("ec2").describe_instances(InstanceIds=list(ids))["Reservations"]
            for instance in reservation["Instances"]
        }
        return [found[one] for one in ids]

    def running(self, node_group: str) -> list[str]:
        """Return the ids of the running nodes of a group."""
        filters = [
            {"Name": f"tag:{CLUSTER_TAG}", "Values": [self.name]},
            {"Name": f"tag:{NODE_GROUP_TAG}", "Values": [node_group]},
            {"Name": "instance-state-name", "Values": ["running"]},
        ]
        reservations = self.aws.client("ec2").describe_instances(Filters=filters)["Reservations"]
        return sorted(one["InstanceId"] for reservation in reservations for one in reservation["Instances"])

    def requests(self, operation: str) -> list[Mapping[str, Any]]:
        """Return the parameters of the calls of an operation since they were last forgotten."""
        return [call.parameters for call in self.aws.calls(operation)]

    def iam_calls(self) -> list[Call]:
        """Return all that the function has asked of AWS, as IAM sees it."""
        tags = self._tags()
        return [call for made in self._made for call in _as_iam_sees(*made, tags, self.aws.account)]

    def clean_up(self) -> None:
        """Take everything away again."""
        ec2 = self.aws.client("ec2")
        for one in self._launched:
            ec2.modify_instance_attribute(InstanceId=one, DisableApiStop={"Value": False})
        if self.power:
            self.aws.client("cloudformation").delete_stack(StackName=self.name)
            self.aws.client("lambda").delete_function(FunctionName=self.power)
            self.aws.client("iam").delete_role(RoleName=self.power)
        self.aws.client("dynamodb").delete_table(TableName=self.table)
        self.aws.client("sns").delete_topic(TopicArn=self.topic)
        if self._launched:
            ec2.terminate_instances(InstanceIds=self._launched)

    def _report(self, ids: list[str], load: float | None) -> None:
        """Put the launches of instances back by a day, and let them report until an hour from now."""
        self.aws.set_launch_time(self.now - timedelta(days=1), *ids)
        if load is None:
            return
        start = datetime.fromtimestamp(self.now.timestamp() // 300 * 300, tz=UTC)
        data = [
            {
                "MetricName": "nvidia_smi_utilization_gpu",
                "Dimensions": [{"Name": "InstanceId", "Value": one}],
                "Timestamp": start + number * _PERIOD,
                "Values": [load],
                "Counts": [5],
            }
            for one in ids
            for number in range(-20, 13)
        ]
        self.aws.client("cloudwatch").put_metric_data(Namespace=self.settings.node_namespace, MetricData=data)

    def _make_power_function(self, count: int) -> None:
        source = function_source("cluster_power")
        packed = io.BytesIO()
        with zipfile.ZipFile(packed, "w") as archive:
            for file in source.files:
                archive.write(source.root / file, file)
        role = self.aws.client("iam").create_role(RoleName=f"{self.name}-power", AssumeRolePolicyDocument=_TRUST)
        settings = {"cluster": self.name, "groups": {GROUP: {"count": count}}}
        self.power = f"{self.name}-power"
        self.aws.client("lambda").create_function(
            FunctionName=self.power,
            Runtime="python3.13",
            Role=role["Role"]["Arn"],
            Handler=source.handler,
            Timeout=50,
            Code={"ZipFile": packed.getvalue()},
            Environment={
                "Variables": {
                    "CLUSTER_POWER_SETTINGS": json.dumps(settings),
                    "ALERT_TOPIC_ARN": self.topic,
                    "STATE_TABLE": self.table,
                    "STACK_ID": self.stack,
                    "POWERTOOLS_METRICS_NAMESPACE": "CdkTrainingCluster/Functions",
                    "POWERTOOLS_SERVICE_NAME": "cluster_power",
                }
            },
        )

        for alias in ("idle", "operate"):
            self.aws.client("lambda").create_alias(FunctionName=self.power, Name=alias, FunctionVersion="$LATEST")

    def _tags(self) -> dict[str, dict[str, str]]:
        """Return the tags of everything that can be tagged, by its id or name."""
        found: dict[str, dict[str, str]] = {}
        for one in self.aws.client("ec2").describe_tags()["Tags"]:
            found.setdefault(one["ResourceId"], {})[one["Key"]] = one["Value"]
        for one in self.aws.client("autoscaling").describe_tags()["Tags"]:
            found.setdefault(one["ResourceId"], {})[one["Key"]] = one["Value"]
        return found


def _as_iam_sees(
    service: str, operation: str, parameters: Mapping[str, Any], tags: Mapping[str, Mapping[str, str]], account: str
) -> Iterable[Call]:
    """Yield a call once for each resource that IAM checks it against."""
    region = "us-east-1"
    if service == "sns":
        yield Call(action=f"sns:{operation}", resource=parameters["TopicArn"])
    elif service == "dynamodb":
        (table,) = parameters.get("RequestItems") or [parameters["TableName"]]
        arn = f"arn:aws:dynamodb:{region}:{account}:table/{table}"
        yield Call(action=f"dynamodb:{operation}", resource=arn, context={"dynamodb:LeadingKeys": _parts(parameters)})
    elif operation not in _WRITES:
        yield Call(action=f"{service}:{operation}", resource="*")
    elif operation == "Invoke":
        name = f"{parameters['FunctionName']}:{parameters['Qualifier']}"
        yield Call(action="lambda:InvokeFunction", resource=f"arn:aws:lambda:{region}:{account}:function:{name}")
    elif service == "autoscaling":
        written = parameters["Tags"]
        name = written[0]["ResourceId"]
        arn = f"arn:aws:autoscaling:{region}:{account}:autoScalingGroup:0:autoScalingGroupName/{name}"
        keys = [tag["Key"] for tag in written]
        yield Call(action=f"autoscaling:{operation}", resource=arn, context=_context(tags.get(name, {}), keys))
    else:
        of_tags = [tag["Key"] for tag in parameters["Tags"]] if "Tags" in parameters else None
        for one in parameters.get("InstanceIds") or parameters["Resources"]:
            arn = f"arn:aws:ec2:{region}:{account}:instance/{one}"
            yield Call(action=f"ec2:{operation}", resource=arn, context=_context(tags.get(one, {}), of_tags))


def _parts(parameters: Mapping[str, Any]) -> list[str]:
    """Return the partition keys that a request to DynamoDB names."""
    requests = [one for each in parameters.get("RequestItems", {}).values() for one in each]
    items = [one["PutRequest"]["Item"] if "PutRequest" in one else one["DeleteRequest"]["Key"] for one in requests]
    keys = [item[StateAttribute.PART] for item in items] or [parameters["ExpressionAttributeValues"][":part"]]
    return sorted({key["S"] for key in keys})


def _context(tags: Mapping[str, str], keys: list[str] | None) -> dict[str, str | list[str]]:
    context: dict[str, str | list[str]] = {f"aws:ResourceTag/{key}": value for key, value in tags.items()}
    return context if keys is None else {**context, "aws:TagKeys": keys}


_TRUST = json.dumps(
    {"Statement": [{"Effect": "Allow", "Action": "sts:AssumeRole", "Principal": {"Service": "lambda.amazonaws.com"}}]}
)
