"""Every resource type that the local AWS supports is created, changed in place, read back and deleted."""

import pytest

from batch_template import batch_template
from eks_pods_template import pods_template
from eks_template import eks_template
from everything_template import LAYER, everything_template
from local_aws import LocalAws
from local_aws.cloudformation import schemas
from local_aws.cloudformation.resources import HANDLERS
from local_aws.defaults import ACCOUNT
from local_aws_scene import NETWORK, NODES, ROLE, Stacks, Template
from pcs_scene import pcs_cluster
from spot_scene import spot_fleet
from warm_scene import warm_nodes
from wrong_hyperpod import governed_template


def test_everything_is_created_changed_in_place_and_deleted(aws: LocalAws, stacks: Stacks) -> None:
    name = stacks.create(everything_template("first", 1))
    assert stacks.reasons(name) == {}
    before = stacks.physical_ids(name)
    outputs = {output["OutputKey"]: output["OutputValue"] for output in stacks.described(name)["Outputs"]}
    assert all(arn.startswith("arn:aws:") for arn in outputs.values())

    stacks.update(name, everything_template("second", 3))
    assert stacks.reasons(name) == {}
    assert stacks.status(name) == "UPDATE_COMPLETE"
    assert stacks.physical_ids(name) == before

    function = aws.client("lambda").get_function(FunctionName=before["Function"])
    assert function["Configuration"]["Environment"]["Variables"] == {"TAG": "second"}
    assert function["Configuration"]["Layers"][0]["Arn"] == LAYER
    assert function["Tags"]["tag"] == "second"
    (alarm,) = aws.client("cloudwatch").describe_alarms(AlarmNames=[before["Alarm"]])["MetricAlarms"]
    assert alarm["EvaluationPeriods"] == 3
    budget = aws.client("budgets").describe_budget(AccountId=ACCOUNT, BudgetName=before["Spending"])["Budget"]
    assert float(budget["BudgetLimit"]["Amount"]) == 3000
    assert _described_metrics(aws) == (before["Metrics"], True, 3, True, "second")
    groups = aws.client("logs").describe_log_groups(logGroupNamePrefix=before["Logs"])["logGroups"]
    assert [group["retentionInDays"] for group in groups] == [3]
    assert aws.client("iam").list_role_policies(RoleName=before["Role"])["PolicyNames"] == ["inline-second"]
    assert aws.client("ssm").get_parameter(Name=before["Parameter"])["Parameter"]["Value"] == "second"
    runbook = aws.client("ssm").describe_document(Name=before["Runbook"])["Document"]
    assert (runbook["Description"], runbook["DefaultVersion"], runbook["DocumentType"]) == (
        "second",
        "2",
        "Automation",
    )
    rules = aws.client("events").list_targets_by_rule(Rule=before["Rule"])["Targets"]
    assert [target["Id"] for target in rules] == ["second"]
    reserved = aws.client("ec2").describe_capacity_reservations(CapacityReservationIds=[before["Reserved"]])
    (described,) = reserved["CapacityReservations"]
    assert (described["TotalInstanceCount"], described["EndDate"].year) == (3, 2093)
    assert described["Tags"] == [{"Key": "tag", "Value": "second"}]
    groups = aws.client("resource-groups")
    assert groups.get_group(GroupName=before["Pool"])["Group"]["Description"] == "second"
    (member,) = groups.list_group_resources(Group=before["Pool"])["Resources"]
    assert member["Identifier"]["ResourceArn"] == described["CapacityReservationArn"]
    (table,) = aws.client("ec2").describe_route_tables(RouteTableIds=[before["Table"]])["RouteTables"]
    assert before["Nat"] in [route.get("NatGatewayId") for route in table["Routes"]]

    (copying,) = aws.client("s3").get_bucket_replication(Bucket=before["Copied"])["ReplicationConfiguration"]["Rules"]
    assert (copying["ID"], copying["Destination"]["Bucket"]) == ("second", f"arn:aws:s3:::{before['Bucket']}")
    assert before["DirectoryBucket"].endswith("--use1-az4--x-s3")
    express = aws.client("s3express").get_bucket_lifecycle_configuration(Bucket=before["DirectoryBucket"])
    assert express["Rules"][0]["AbortIncompleteMultipartUpload"] == {"DaysAfterInitiation": 3}
    policy = aws.client("s3express").get_bucket_policy(Bucket=before["DirectoryBucket"])["Policy"]
    assert "second.amazonaws.com" in policy

    stacks.api.delete_stack(StackName=name)
    assert name not in [stack["StackName"] for stack in stacks.api.describe_stacks()["Stacks"]]


def _described_metrics(aws: LocalAws) -> tuple[str, bool, int, bool, str]:
    amp = aws.client("amp")
    (workspace,) = amp.list_workspaces(alias="second")["workspaces"]
    where = {"workspaceId": workspace["workspaceId"]}
    manager = amp.describe_alert_manager_definition(**where)["alertManagerDefinition"]["data"]
    days = amp.describe_workspace_configuration(**where)["workspaceConfiguration"]["retentionPeriodInDays"]
    rules = amp.describe_rule_groups_namespace(**where, name="rules")["ruleGroupsNamespace"]
    return workspace["arn"], b"subject: second" in manager, days, b"second" in rules["data"], rules["tags"]["tag"]


def test_no_type_is_supported_that_no_test_deploys() -> None:
    alone: Template = {"Resources": {"Role": ROLE}}
    templates = (
        NETWORK,
        NODES,
        alone,
        spot_fleet(),
        warm_nodes(),
        batch_template(),
        eks_template(),
        pods_template(),
        pcs_cluster(),
        governed_template(),
        everything_template("first", 1),
    )
    deployed = {resource["Type"] for template in templates for resource in template["Resources"].values()}
    # Custom resources call a function, and are deployed in test_custom_resources.py.
    assert deployed | {"AWS::CloudFormation::CustomResource"} == set(HANDLERS)


@pytest.mark.parametrize("kind", sorted(HANDLERS))
def test_a_handler_supports_only_properties_that_the_schema_has(kind: str) -> None:
    schema = schemas.schema_of(kind)
    assert schema is not None
    assert HANDLERS[kind].supported <= set(schema["properties"])
