"""What a cluster file says of a budget: read, refused in its own words, and shown."""

from pathlib import Path

import pytest
from aws_cdk import App
from aws_cdk.assertions import Template
from typer.testing import CliRunner

from cdk_training_cluster import Budget, OnExceed
from cdk_training_cluster_cli.main import training_cluster
from cdk_training_cluster_file import read_cluster_file
from cdk_training_cluster_stacks.cluster import ClusterStack
from cdk_training_cluster_stacks.foundation import FoundationStack
from cluster_contract.tags import CLUSTER_TAG
from cluster_files import FACTS, RIGHT, problems
from examples import PROJECT
from local_aws.cloudformation import schemas

ALERTS = "alerts: {emails: [ml@example.com]}\n"


@pytest.mark.parametrize(
    ("text", "budget"),
    [
        ("", None),
        ("budget: {monthly_usd: 20000}", Budget(monthly_usd=20_000, emails=("ml@example.com",))),
        (
            "budget: {monthly_usd: 99.5, thresholds: [33.3], services: [AmazonEC2], linked_accounts: "
            "['111122223333'], emails: [], forecast_thresholds: [], on_exceed: no-new-nodes, warning_minutes: 10, "
            "max_usd_per_hour: 500}",
            Budget(
                monthly_usd=99.5,
                thresholds=(33.3,),
                services=("AmazonEC2",),
                linked_accounts=("111122223333",),
                emails=(),
                forecast_thresholds=(),
                on_exceed=OnExceed.NO_NEW_NODES,
                warning_minutes=10,
                max_usd_per_hour=500,
            ),
        ),
    ],
)
def test_a_budget_is_read(text: str, budget: Budget | None, tmp_path: Path) -> None:
    (tmp_path / "cluster.yaml").write_text(RIGHT + ALERTS + text)

    assert read_cluster_file("cluster.yaml", relative_to=tmp_path).to_budget() == budget


WRONG: dict[str, tuple[str, str]] = {
    "no amount": ("{}", "budget.monthly_usd: is missing; add it, such as monthly_usd: 20000"),
    "a threshold": ("{monthly_usd: 1, thresholds: [1001]}", "budget.thresholds[0]: must be at most 1000, got 1001"),
    "a word": (
        "{monthly_usd: 1, on_exceed: halt}",
        'budget.on_exceed: must be notify, no-new-nodes or stop, got "halt"',
    ),
    "a service": (
        "{monthly_usd: 1, services: [E C2]}",
        'budget.services[0]: must be the name of a service in the billing metrics, such as AmazonEC2, got "E C2"',
    ),
    "a price of a name that nothing has": (
        "{monthly_usd: 1, prices: {aws-pcs-nod: 0.1}}",
        "budget.prices.aws-pcs-nod: must name an instance type (p5.48xlarge or ml.p5.48xlarge), a reservation "
        "(cr-0a1b2c3d4e5f67890), a Spot price (spot p5.48xlarge us-east-1b) or a unit, got 'aws-pcs-nod': did you "
        "mean aws-pcs-node?",
    ),
    "less than a cent": (
        "{monthly_usd: 0.0000001}",
        "budget.monthly_usd: must be at least 0.01, got 1e-07",
    ),
    "an account": (
        "{monthly_usd: 1, linked_accounts: [111122223333]}",
        'budget.linked_accounts[0]: must be text, got 111122223333; put it in quotes: "111122223333"',
    ),
}


@pytest.mark.parametrize(("text", "says"), WRONG.values(), ids=WRONG)
def test_a_wrong_budget_is_one_sentence_with_its_place(text: str, says: str, tmp_path: Path) -> None:
    assert problems(tmp_path, f"{RIGHT}budget: {text}\n") == [f"cluster.yaml:12: {says}"]


def test_a_partition_without_billing_metrics_is_refused_before_anything_is_made(tmp_path: Path) -> None:
    text = RIGHT.replace("us-east-1b", "us-gov-west-1b") + "budget: {monthly_usd: 5}\n"

    assert problems(tmp_path, text) == [
        "cluster.yaml:12: budget: must be left out in us-gov-west-1: billing metrics exist in us-east-1 only, which "
        "the partition aws-us-gov does not have"
    ]


def test_check_tells_the_alarms_that_will_exist(tmp_path: Path) -> None:
    file = tmp_path / "cluster.yaml"
    budget = "{monthly_usd: 20000, services: [AmazonEC2, AmazonFSx], linked_accounts: ['111122223333']}"
    file.write_text(f"{RIGHT}{ALERTS}budget: {budget}\n")
    shown = CliRunner().invoke(training_cluster, ["check", str(file)], env={"COLUMNS": "200"}).output

    assert (
        "Billing alarms: 18 in us-east-1, for 1.80 USD a month, at 50 % (10,000 USD), 80 % (16,000 USD) and 100 % "
        "(20,000 USD) of a month's 20,000 USD\n"
        "  of the whole organization: in total, AmazonEC2 and AmazonFSx\n"
        "  and the same of linked account 111122223333\n"
        "  notify ml@example.com\n"
    ) in shown
    assert (
        "AWS budget: of the cluster's own bill, up to a day late; notifies at 50 % (10,000 USD), 80 % (16,000 USD) "
        "and 100 % (20,000 USD) of a month's 20,000 USD\n"
        "  when AWS forecasts that the month reaches 100 % (20,000 USD)\n"
        "  counts nothing until the cost allocation tag is active: aws ce update-cost-allocation-tags-status "
    ) in shown
    file.write_text(f"{RIGHT}budget: {{monthly_usd: 5, thresholds: [50]}}\n")
    shown = CliRunner().invoke(training_cluster, ["check", str(file)], env={"COLUMNS": "200"}).output
    assert "at 50 % (2.50 USD) of a month's 5 USD\n  of the whole account; in a management account, of the" in shown
    file.write_text(RIGHT)
    assert "Billing alarms: none (no budget)" in CliRunner().invoke(training_cluster, ["check", str(file)]).output


def test_all_that_a_cluster_is_billed_for_has_the_tag_that_the_aws_budget_counts_by() -> None:
    file = read_cluster_file(PROJECT / "clusters/spot-elastic.yaml")
    app = App()
    foundation = FoundationStack(app, "Foundation", cluster=file)
    stacks = (foundation, ClusterStack(app, "Cluster", cluster=file, foundation=foundation))
    made = [one for stack in stacks for one in Template.from_stack(stack).to_json()["Resources"].values()]
    untagged = {one["Type"] for one in made if CLUSTER_TAG not in str(one.get("Properties"))}

    assert {kind for kind in untagged if (schemas.schema_of(kind) or {}).get("tagging", {}).get("taggable")} == set()
    for template in (one for one in made if one["Type"] == "AWS::EC2::LaunchTemplate"):
        kinds = {each["ResourceType"] for each in template["Properties"]["LaunchTemplateData"]["TagSpecifications"]}
        assert kinds == {"instance", "volume"}


@pytest.mark.parametrize(
    "name",
    [
        "p5.48xlarge",
        "ml.p5.48xlarge",
        "m7i.large",
        "p9.large",
        "on-demand p5.48xlarge",
        "spot p5.48xlarge us-east-1b",
        "p5.48xlarge us-east-1b",
        "cr-0a1b2c3d4e5f67890",
        "capacity-block cr-0a1b2c3d4e5f67890",
        "fsx-persistent-2-500",
    ],
)
def test_a_price_is_stated_under_any_name_that_the_spend_function_looks_up(name: str, tmp_path: Path) -> None:
    text = f"{RIGHT}instance_type_facts: [{FACTS}]\nbudget: {{monthly_usd: 1, prices: {{{name}: 0.5}}}}\n"
    assert problems(tmp_path, text, legal=True) == []


@pytest.mark.parametrize("name", ["p5.49xlarge", "p9.48xlarge", "spot p5.48xlarge", "cr-1", "xl", "m7i"])
def test_a_price_that_nothing_looks_up_is_refused(name: str, tmp_path: Path) -> None:
    (problem,) = problems(tmp_path, f"{RIGHT}budget: {{monthly_usd: 1, prices: {{{name}: 0.5}}}}\n")
    assert f"got '{name}'" in problem
