"""The whole cluster: what it composes, what it refuses, and who may do what."""

import json
import re
from dataclasses import replace
from typing import Any

import pytest
from aws_cdk import App, Environment, Stack
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_iam as iam
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_s3 as s3
from aws_cdk import aws_sns as sns
from aws_cdk.assertions import Match, Template

from cdk_training_cluster import (
    ClusterNetwork,
    Dataset,
    IdlePolicy,
    IdleSignal,
    NodeGroup,
    TrainingCluster,
    TrainingFileSystem,
)
from cdk_training_cluster.nodes.runs import _WATCHES
from cluster_contract.metrics import FUNCTION_NAMESPACE, NODE_METRICS, job_namespace, node_namespace
from local_aws.cloudformation.templates import depends_on
from synthesis import ZONE, new_stack, only, resources

_WORKERS = NodeGroup(name="workers", instance_types=["p4de.24xlarge"], count=8)
_CPU = NodeGroup(name="login", instance_types=["g5.xlarge"], count=1)
_POWER = {"Handler": "cluster_power.handler.handler"}


def _cluster(stack: Stack, **settings: Any) -> TrainingCluster:
    return TrainingCluster(
        stack,
        "Cluster",
        **{"availability_zone": ZONE, "node_groups": [_WORKERS], "cluster_name": "pod", **settings},
    )


@pytest.fixture(scope="module")
def whole() -> TrainingCluster:
    """Return a cluster of two node groups, which tests only look at."""
    return _cluster(new_stack(), node_groups=[_WORKERS, _CPU])


@pytest.fixture(scope="module")
def stack(whole: TrainingCluster) -> Stack:
    """Return its stack."""
    return Stack.of(whole)


def _refusal(**settings: Any) -> list[str]:
    with pytest.raises(ValueError) as refused:  # noqa: PT011  # the whole text is compared
        _cluster(new_stack(), **settings)
    return str(refused.value).splitlines()


def test_a_zone_or_a_network_is_required_and_both_are_too_many() -> None:
    assert _refusal(availability_zone=None) == [
        "availability_zone or network is required: name the zone to make a network in, such as "
        "availability_zone='us-east-1b', or give a ClusterNetwork"
    ]
    stack = new_stack()
    with pytest.raises(ValueError, match=r"^availability_zone and network exclude each other"):
        _cluster(stack, network=ClusterNetwork(stack, "Network", availability_zone=ZONE))


def test_every_alarm_says_what_is_wrong_where_to_look_and_what_to_do(stack: Stack) -> None:
    alarms = resources(stack, "AWS::CloudWatch::Alarm")
    assert len(alarms) > 12
    for alarm in alarms.values():
        description = json.dumps(alarm["Properties"]["AlarmDescription"])
        assert re.search(
            r"pod: .+\. Look in .+\. [A-Z].+\. Runbook: https://\S+/operations/#[a-z-]+\W*$", description
        )


def test_no_group_is_refused() -> None:
    assert _refusal(node_groups=[]) == ["node_groups must hold at least one NodeGroup, got none"]


def test_every_mistake_is_told_at_once() -> None:
    wrong = NodeGroup(name="wrong", instance_types=["g5.xlarge"], count=1, efa=True)
    unknown = NodeGroup(name="unknown", instance_types=["p55.48xlarge"], count=1)
    problems = _refusal(availability_zone=None, node_groups=[wrong, unknown])
    assert [problem.split(":")[0] for problem in problems] == [
        "availability_zone or network is required",
        "node group 'wrong'",
        "node group 'unknown'",
    ]


def test_a_file_system_of_another_network_is_refused() -> None:
    stack = new_stack()
    here = ClusterNetwork(stack, "Here", availability_zone=ZONE)
    there = ClusterNetwork(stack, "There", availability_zone="us-east-1c")
    file_system = TrainingFileSystem(stack, "FileSystem", network=there)
    with pytest.raises(ValueError, match=r"^file_system must be in the cluster's network, got one in Test/There"):
        _cluster(stack, availability_zone=None, network=here, file_system=file_system)
    with pytest.raises(ValueError, match=r"^network is required beside file_system"):
        _cluster(new_stack(), file_system=file_system)


def test_data_sets_bring_a_file_system_and_nodes_mount_it() -> None:
    stack = new_stack()
    corpus = s3.Bucket.from_bucket_name(stack, "Corpus", "corpus")
    cluster = _cluster(stack, datasets=[Dataset(bucket=corpus, file_system_path="/data")])
    assert cluster.file_system is not None
    (file_system,) = resources(stack, "AWS::FSx::FileSystem")
    user_data = str(only(stack, "AWS::EC2::LaunchTemplate")["Properties"]["LaunchTemplateData"]["UserData"])
    assert f"'{file_system}', 'DNSName'" in user_data
    assert f"'{file_system}', 'LustreMountName'" in user_data


def test_without_data_sets_there_is_no_file_system(whole: TrainingCluster, stack: Stack) -> None:
    assert whole.file_system is None
    assert resources(stack, "AWS::FSx::FileSystem") == {}


def test_a_group_may_be_called_as_the_cluster_s_own_parts_are() -> None:
    names = ["Power", "Network", "NodeRole", "Alerts", "FileSystem"]
    groups = [NodeGroup(name, instance_types=["g5.xlarge"], count=1) for name in names]
    assert [fleet.node_group.name for fleet in _cluster(new_stack(), node_groups=groups).node_groups] == names


def test_what_is_wrong_with_a_group_s_scripts_is_told_with_the_group_s_name() -> None:
    wrong = NodeGroup("workers", instance_types=["g5.xlarge"], count=1, scripts_before=["no-such-file.sh"])
    assert _refusal(node_groups=[wrong]) == [
        "node group 'workers': scripts_before must name files that exist, got 'no-such-file.sh'"
    ]


def test_a_layer_of_one_s_own_serves_a_region_without_aws_s() -> None:
    stack = new_stack(region="cn-northwest-1")
    with pytest.raises(ValueError, match=r"^powertools_layer is required in the region cn-northwest-1"):
        _cluster(stack, availability_zone="cn-northwest-1a")
    stack = new_stack(region="cn-northwest-1")
    arn = "arn:aws-cn:lambda:cn-northwest-1:111122223333:layer:powertools:1"
    layer = lambda_.LayerVersion.from_layer_version_arn(stack, "Layer", arn)
    _cluster(stack, availability_zone="cn-northwest-1a", powertools_layer=layer)
    layers = [function["Properties"]["Layers"] for function in resources(stack, "AWS::Lambda::Function").values()]
    assert layers == [[arn]] * 3


def test_a_node_group_is_found_by_its_name(whole: TrainingCluster) -> None:
    assert whole.node_group("login").node_group is _CPU
    assert [fleet.node_group.name for fleet in whole.node_groups] == ["workers", "login"]
    with pytest.raises(ValueError) as refused:  # noqa: PT011  # the whole text is compared
        whole.node_group("head")
    assert str(refused.value) == "there is no node group 'head': the cluster has workers, login"


def test_the_role_has_session_manager_its_scripts_its_metrics_its_reports_and_the_job_role_and_nothing_else(
    whole: TrainingCluster, stack: Stack
) -> None:
    role = stack.resolve(whole.role.role_name)
    policies = resources(stack, "AWS::IAM::Policy", {"Roles": Match.array_with([role])})
    statements = [
        statement for policy in policies.values() for statement in policy["Properties"]["PolicyDocument"]["Statement"]
    ]
    actions = [
        action for s in statements for action in (s["Action"] if isinstance(s["Action"], list) else [s["Action"]])
    ]
    # Hooks and tables are limited to the cluster's own, events to their source, tags to the node's own.
    assert sorted(actions) == [
        "autoscaling:CompleteLifecycleAction",
        "autoscaling:DescribeAutoScalingInstances",
        "cloudwatch:PutMetricData",
        "dynamodb:PutItem",
        "ec2:CreateTags",
        "events:PutEvents",
        "s3:GetObject",
        "ssm:UpdateInstanceInformation",
        "ssmmessages:CreateControlChannel",
        "ssmmessages:CreateDataChannel",
        "ssmmessages:OpenControlChannel",
        "ssmmessages:OpenDataChannel",
        "sts:AssumeRole",
    ]
    (metrics,) = [statement for statement in statements if statement["Action"] == "cloudwatch:PutMetricData"]
    here = {"aws:RequestedRegion": {"Ref": "AWS::Region"}}
    assert metrics["Condition"] == {"StringEquals": {"cloudwatch:namespace": node_namespace("pod"), **here}}
    for statement in statements:
        assert statement["Resource"] != "*" or here.items() <= statement["Condition"]["StringEquals"].items()
    assert "ManagedPolicyArns" not in resources(stack, "AWS::IAM::Role")[role["Ref"]]["Properties"]


def test_the_function_learns_of_a_group_when_cloudformation_is_done_with_it_and_its_hooks(stack: Stack) -> None:
    template = Template.from_stack(stack).to_json()
    groups, hooks = (resources(stack, f"AWS::AutoScaling::{kind}") for kind in ("AutoScalingGroup", "LifecycleHook"))
    assert (len(groups), len(hooks)) == (2, 4)
    (function,) = resources(stack, "AWS::Lambda::Function", _POWER)
    assert [name for name in (*groups, *hooks) if not depends_on(template, function, name)] == []


def test_what_belongs_to_others_is_opened_to_the_nodes_and_to_operators_and_peers_are_let_in() -> None:
    stack = new_stack()
    cluster = _cluster(stack)
    operators = iam.Role(stack, "Operators", assumed_by=iam.AccountRootPrincipal())
    s3.Bucket(stack, "Results").grant_write(cluster)
    cluster.grant_power(operators)
    cluster.connections.allow_from(ec2.Peer.ipv4("10.0.0.0/24"), ec2.Port.tcp(22))
    of_role = {
        name: resources(stack, "AWS::IAM::Policy", {"Roles": [stack.resolve(role.role_name)]})
        for name, role in {"jobs": cluster.job_role, "nodes": cluster.role}.items()
    }
    assert {name: "s3:PutObject" in str(found) for name, found in of_role.items()} == {"jobs": True, "nodes": False}
    (policy,) = resources(stack, "AWS::IAM::Policy", {"Roles": [stack.resolve(operators.role_name)]}).values()
    assert policy["Properties"]["PolicyDocument"]["Statement"][0]["Action"] == "lambda:InvokeFunction"
    only(stack, "AWS::EC2::SecurityGroupIngress", {"CidrIp": "10.0.0.0/24", "FromPort": 22})


def test_cluster_fleet_network_and_file_system_can_stand_where_cdk_takes_a_peer() -> None:
    stack = new_stack()
    corpus = s3.Bucket.from_bucket_name(stack, "Corpus", "corpus")
    cluster = _cluster(stack, datasets=[Dataset(bucket=corpus, file_system_path="/data")])
    outside = ec2.SecurityGroup(stack, "Outside", vpc=cluster.network.vpc)
    assert cluster.file_system is not None
    peers: list[ec2.IConnectable] = [cluster, cluster.node_group("workers"), cluster.network, cluster.file_system]
    for port, peer in enumerate(peers, start=9000):
        outside.connections.allow_from(peer, ec2.Port.tcp(port))
    ports = {
        rule["Properties"]["FromPort"]
        for rule in resources(stack, "AWS::EC2::SecurityGroupIngress").values()
        if rule["Properties"].get("FromPort", 0) >= 9000
    }
    assert ports == {9000, 9001, 9002, 9003}


def test_alarms_of_the_account_may_publish_to_the_topic(stack: Stack) -> None:
    (topic,) = resources(stack, "AWS::SNS::Topic")
    statements = only(stack, "AWS::SNS::TopicPolicy")["Properties"]["PolicyDocument"]["Statement"]
    allowed = [statement for statement in statements if statement["Effect"] == "Allow"]
    assert allowed == [
        {
            "Action": "sns:Publish",
            "Condition": {"StringEquals": {"aws:SourceAccount": {"Ref": "AWS::AccountId"}}},
            "Effect": "Allow",
            "Principal": {"Service": "cloudwatch.amazonaws.com"},
            "Resource": {"Ref": topic},
            "Sid": "AlarmsOfThisAccount",
        }
    ]
    alarms = resources(stack, "AWS::CloudWatch::Alarm")
    assert alarms
    assert all(alarm["Properties"]["AlarmActions"] == [{"Ref": topic}] for alarm in alarms.values())


def test_a_topic_of_one_s_own_is_used() -> None:
    stack = new_stack()
    topic = sns.Topic.from_topic_arn(stack, "Topic", "arn:aws:sns:us-east-1:111122223333:alerts")
    assert _cluster(stack, alert_topic=topic).alert_topic is topic
    assert resources(stack, "AWS::SNS::Topic") == {}


def test_no_node_can_write_what_the_functions_report_or_silence_their_alarms() -> None:
    stack = new_stack()
    _cluster(stack, idle_policy=IdlePolicy(signals=[IdleSignal.heartbeat(), IdleSignal.efa()]))
    writable = {
        statement["Condition"]["StringEquals"]["cloudwatch:namespace"]
        for policy in resources(stack, "AWS::IAM::Policy").values()
        for statement in policy["Properties"]["PolicyDocument"]["Statement"]
        if "cloudwatch:PutMetricData" in statement["Action"]
    }
    watched = {
        (metric["Namespace"], metric["MetricName"])
        for alarm in resources(stack, "AWS::CloudWatch::Alarm").values()
        for metric in [
            alarm["Properties"],
            *(each.get("MetricStat", {}).get("Metric", {}) for each in alarm["Properties"].get("Metrics", ())),
        ]
        if metric.get("Namespace") in writable
    }
    functions = resources(stack, "AWS::Lambda::Function").values()
    reported = {each["Properties"]["Environment"]["Variables"]["POWERTOOLS_METRICS_NAMESPACE"] for each in functions}
    nodes, jobs = node_namespace("pod"), job_namespace("pod")
    assert writable == {nodes, jobs}
    # A job reports its own runs: it may as well not report them.
    assert watched == {
        (nodes, NODE_METRICS.bootstrap_failed),
        (nodes, NODE_METRICS.verification_failed),
        *((jobs, watch.metric) for watch in _WATCHES),
    }
    assert reported == {FUNCTION_NAMESPACE}


def test_nodes_volumes_and_groups_carry_the_tag_of_the_cluster_and_report_under_its_name(
    whole: TrainingCluster, stack: Stack
) -> None:
    tag = {"Key": "cdk-training-cluster:cluster", "Value": "pod"}
    for template in resources(stack, "AWS::EC2::LaunchTemplate").values():
        for specification in template["Properties"]["LaunchTemplateData"]["TagSpecifications"]:
            assert tag in specification["Tags"]
    for group in resources(stack, "AWS::AutoScaling::AutoScalingGroup").values():
        assert {**tag, "PropagateAtLaunch": True} in group["Properties"]["Tags"]
    metric = whole.metric_gpu_utilization(statistic="Maximum")
    assert (metric.metric_name, metric.dimensions, metric.statistic) == (
        NODE_METRICS.gpu_utilization,
        {"Cluster": "pod"},
        "Maximum",
    )


def test_the_metric_of_a_cluster_is_that_of_neuron_devices_where_all_nodes_have_them() -> None:
    neuron = replace(_WORKERS, name="neuron", instance_types=["trn1.32xlarge"])
    for groups, metric in (
        ([neuron], NODE_METRICS.neuron_core_utilization),
        ([neuron, _WORKERS], NODE_METRICS.gpu_utilization),
    ):
        assert _cluster(new_stack(), node_groups=groups).metric_gpu_utilization().metric_name == metric


def test_nodes_may_stand_in_another_stack_than_what_is_kept() -> None:
    app = App()
    environment = Environment(region="us-east-1")
    kept = Stack(app, "Kept", env=environment)
    network = ClusterNetwork(kept, "Network", availability_zone=ZONE)
    file_system = TrainingFileSystem(kept, "FileSystem", network=network)
    stack = Stack(app, "Nodes", env=environment)
    cluster = TrainingCluster(stack, "Cluster", network=network, file_system=file_system, node_groups=[_WORKERS])
    assert cluster.file_system is file_system
    template = app.synth().get_stack_by_name("Nodes").template
    kinds = {resource["Type"].split("::")[1] for resource in template["Resources"].values()}
    assert "FSx" not in kinds
    assert "Fn::ImportValue" in str(template)
