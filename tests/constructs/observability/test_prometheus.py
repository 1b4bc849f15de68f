"""The workspace of a cluster, as CloudFormation sees it."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from aws_cdk import App, Environment, Stack
from aws_cdk import aws_kms as kms
from aws_cdk.assertions import Match, Template

from cdk_training_cluster import Capacity, NodeGroup, Observability, TrainingCluster
from cluster_contract.metrics import job_namespace, node_namespace
from cluster_contract.runs import RunMetric


def _cluster(directory: Path, region: str = "us-east-1", **settings: Any) -> TrainingCluster:
    stack = Stack(App(outdir=str(directory)), "Test", env=Environment(account="1" * 12, region=region))
    if settings.pop("key", False):
        settings["encryption_key"] = kms.Key(stack, "Key")
    return TrainingCluster(
        stack,
        "Cluster",
        cluster_name="llama",
        availability_zone=f"{region}a",
        node_groups=[NodeGroup("workers", instance_types=["p5.48xlarge"], count=2, capacity=Capacity.on_demand())],
        **settings,
    )


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Template:
    """A cluster with a key of its own, whose samples are kept for 90 days."""
    observability = Observability.prometheus(retention_days=90)
    cluster = _cluster(tmp_path_factory.mktemp("out"), observability=observability, key=True)
    return Template.from_stack(Stack.of(cluster))


def _workspace(template: Template) -> tuple[str, Mapping[str, Any]]:
    [found] = template.find_resources("AWS::APS::Workspace").items()
    return found


def test_the_workspace_is_kept_with_what_was_measured(template: Template) -> None:
    _, workspace = _workspace(template)
    assert (workspace["UpdateReplacePolicy"], workspace["DeletionPolicy"]) == ("Retain", "RetainExceptOnCreate")
    properties = workspace["Properties"]
    assert properties["Alias"] == "llama"
    assert properties["WorkspaceConfiguration"] == {"RetentionPeriodInDays": 90}
    assert "Key" in properties["KmsKeyArn"]["Fn::GetAtt"][0]


def test_nodes_may_write_to_this_workspace_and_to_no_other(template: Template) -> None:
    name, _ = _workspace(template)
    statement = {"Action": "aps:RemoteWrite", "Effect": "Allow", "Resource": {"Fn::GetAtt": [name, "Arn"]}}
    template.has_resource_properties(
        "AWS::IAM::Policy", {"PolicyDocument": {"Statement": Match.array_with([statement])}}
    )


def test_only_this_workspace_may_publish_and_use_the_topic_s_key(template: Template) -> None:
    name, _ = _workspace(template)
    published = {
        "Action": ["sns:Publish", "sns:GetTopicAttributes"],
        "Condition": {
            "ArnEquals": {"aws:SourceArn": {"Fn::GetAtt": [name, "Arn"]}},
            "StringEquals": {"aws:SourceAccount": {"Ref": "AWS::AccountId"}},
        },
        "Principal": {"Service": "aps.amazonaws.com"},
    }
    encrypted = {"Action": ["kms:Decrypt", "kms:GenerateDataKey*"], "Principal": {"Service": "aps.amazonaws.com"}}
    for kind, document, statement in (
        ("AWS::SNS::TopicPolicy", "PolicyDocument", published),
        ("AWS::KMS::Key", "KeyPolicy", encrypted),
    ):
        matching = Match.array_with([Match.object_like(statement)])
        template.has_resource_properties(kind, {document: {"Statement": matching}})


def test_a_cluster_that_asks_for_none_has_none(tmp_path: Path) -> None:
    template = Template.from_stack(Stack.of(_cluster(tmp_path)))
    template.resource_count_is("AWS::APS::Workspace", 0)
    assert "aps" not in str(template.find_resources("AWS::IAM::Policy"))


def test_a_region_without_the_service_is_refused(tmp_path: Path) -> None:
    with pytest.raises(
        ValueError, match=r"^observability must be left out in cn-north-1: CloudFormation has no AWS::"
    ):
        _cluster(tmp_path, "cn-north-1", observability=Observability.prometheus())


@pytest.mark.parametrize(
    ("setting", "value", "said"),
    [
        ("interval_seconds", 9, "interval_seconds must be at least 10, got 9"),
        ("interval_seconds", 301, "interval_seconds must be at most 300, got 301"),
        ("retention_days", 0, "retention_days must be at least 1, got 0"),
        ("retention_days", 1096, "retention_days must be at most 1095, got 1096"),
    ],
)
def test_a_setting_out_of_bounds_is_refused(setting: str, value: int, said: str) -> None:
    with pytest.raises(ValueError, match=f"^{said}$"):
        Observability.prometheus(**{setting: value})


def test_no_number_that_a_job_adds_keeps_an_alarm_silent(template: Template) -> None:
    alarms = [one["Properties"] for one in template.find_resources("AWS::CloudWatch::Alarm").values()]
    # What has the role of nodes or jobs may add values below zero too, which lower a sum and an average.
    reported = [one for one in alarms if one.get("Namespace") in {node_namespace("llama"), job_namespace("llama")}]
    watched = {"BootstrapFailed", "CollectorFailed", "VerificationFailed", RunMetric.SECONDS_WITHOUT_STEP}
    assert watched <= {one["MetricName"] for one in reported}
    for alarm in reported:
        is_low = alarm["ComparisonOperator"].startswith("LessThan")
        assert alarm["Statistic"] == ("Minimum" if is_low else "Maximum"), alarm["MetricName"]
