"""`make live`, against a local AWS that takes the place of the real account."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from examples import PROJECT
from local_aws import LocalAws
from max_seconds import MAX_SECONDS
from rehearsal.cdk_cli import CdkCli
from rehearsal.live import _PARTS
from rehearsal.live_cluster import NAME, RESERVED_TYPE, live_file, prices
from rehearsal.live_facts import fact_differences, read_facts
from rehearsal.live_outcomes import Deployed, judge
from rehearsal.live_questions import questions
from rehearsal.preparation import prepare

_ZONE = "us-east-1b"
_CONFIRMED = "1.34 USD an hour in us-east-1"
_DELETE = f"make live ARGS='--availability-zone {_ZONE} --delete'"


@pytest.fixture(scope="module")
def account(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalAws]:
    directory = tmp_path_factory.mktemp("account")
    with LocalAws(directory / "local-aws.log") as aws:
        prepare(live_file(_ZONE), aws)
        yield aws


def _live(
    build: Path, environment: Mapping[str, str], *arguments: str, typed: str = ""
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "rehearsal.live", "--availability-zone", _ZONE, "--build", str(build), *arguments],
        cwd=PROJECT,
        env={**environment, "COLUMNS": "200"},
        input=typed,
        capture_output=True,
        text=True,
        timeout=MAX_SECONDS,
        check=False,
    )


def test_without_credentials_it_says_so(tmp_path: Path) -> None:
    nobody = {name: value for name, value in os.environ.items() if not name.startswith("AWS_")}
    files = dict.fromkeys(("AWS_CONFIG_FILE", "AWS_SHARED_CREDENTIALS_FILE"), os.devnull)
    ended = _live(tmp_path, {**nobody, **files, "AWS_EC2_METADATA_DISABLED": "true"}, typed=_CONFIRMED)
    assert (ended.returncode, ended.stderr) == (1, "error: Unable to locate credentials\n")


def test_a_region_is_no_zone(tmp_path: Path) -> None:
    ended = _live(tmp_path, os.environ, "--availability-zone", "us-east-1")
    must = "must be the name of an Availability Zone, such as us-east-1b"
    assert (ended.returncode, ended.stderr) == (1, f'error: --availability-zone: {must}, got "us-east-1"\n')


def test_the_price_of_another_region_is_named_as_such() -> None:
    labelled = [what.partition(", at the price in ")[2] for what in prices("eu-west-1")]
    assert labelled[:2] == ["us-east-1", "us-east-1"]
    assert not [what for what in prices("us-east-1") if " at the price in " in what]


@pytest.mark.sweep("test_what_is_left_is_listed_with_the_command_that_deletes_it")
def test_it_creates_compares_and_deletes(account: LocalAws, tmp_path: Path) -> None:
    environment = account.environment()
    bootstrap = f"cdk bootstrap -c cluster=clusters/dev-box.yaml aws://{account.account}/us-east-1"
    assert _live(tmp_path, environment, typed=_CONFIRMED).stderr == f"error: run this once: {bootstrap}\n"
    _bootstrap(account, tmp_path)

    refused = _live(tmp_path, environment, typed="yes\n")
    assert "two reservations of one g4dn.xlarge: 1.05 USD an hour" in refused.stdout
    assert refused.stderr == f"error: nothing was made: what was typed is not {_CONFIRMED!r}\n"
    assert _stacks(account) == {"CDKToolkit"}

    with_eks = "1.47 USD an hour in us-east-1"
    refused = _live(tmp_path, environment, "--eks", typed=_CONFIRMED)
    assert "One t3.small starts" in refused.stdout
    assert "EKS control plane, at the price in us-east-1: 0.10 USD an hour" in refused.stdout
    assert refused.stderr == f"error: nothing was made: what was typed is not {with_eks!r}\n"

    ended = _live(tmp_path, environment, "--eks", typed=f"{with_eks}\n")
    assert ended.stdout.splitlines()[-1] == "Nothing is left of it.", ended.stdout
    results = json.loads((tmp_path / "live.json").read_text())
    assert (ended.returncode, results["left"]) == (0, [])
    assert list(results["stacks"]) == [*_PARTS, *questions(live_file(_ZONE)), "eks"]
    assert all(one["expected"] for one in results["stacks"].values())
    # The local AWS takes the worse of what AWS's documents say.
    refused_by_both = {name for name, one in results["stacks"].items() if one["verdict"] == "refused"}
    assert refused_by_both == {"budget", "reservation-property"}
    answers = results["stacks"]["eks"]["sentences"]
    assert answers == [
        f"the group's desired size was 1 before the {name} changed, and is 0 after it" for name in ("tag", "label")
    ]
    assert _stacks(account) == {"CDKToolkit"}


@pytest.mark.sweep("test_what_is_left_is_listed_with_the_command_that_deletes_it")
def test_a_refused_stack_settles_no_other(account: LocalAws, tmp_path: Path) -> None:
    _bootstrap(account, tmp_path)
    account.set_capacity(RESERVED_TYPE, _ZONE, available=0)
    try:
        ended = _live(tmp_path, account.environment(), typed=f"{_CONFIRMED}\n")
    finally:
        account.set_capacity(RESERVED_TYPE, _ZONE, available=None)
    results = json.loads((tmp_path / "live.json").read_text())
    assert (ended.returncode, results["left"]) == (1, [])
    unexpected = {name for name, one in results["stacks"].items() if not one["expected"]}
    assert unexpected == {"reservation"}
    refused = results["stacks"]["reservation"]
    assert refused["verdict"] == "refused"
    assert "InsufficientInstanceCapacity" in refused["sentences"][0]
    assert f"  {refused['sentences'][0]}\n" in ended.stdout
    accepted = {name for name, one in results["stacks"].items() if one["verdict"] == "accepted"}
    assert {*_PARTS, "p5", "spot-fleet", "grace", "default-target", "lifecycle"} <= accepted
    assert ended.stdout.splitlines()[-1] == "Nothing is left of it."
    assert _stacks(account) == {"CDKToolkit"}


def _bootstrap(account: LocalAws, directory: Path) -> None:
    CdkCli(
        environment=account.environment(),
        cluster_file=PROJECT / "clusters" / "dev-box.yaml",
        output=directory / "cdk.out",
        log=directory / "cdk.log",
        account=account.account,
        region=account.region,
    ).bootstrap()


def _stacks(aws: LocalAws) -> set[str]:
    return {stack["StackName"] for stack in aws.client("cloudformation").describe_stacks()["Stacks"]}


def _vpc(aws: LocalAws) -> str:
    tags: Any = [{"ResourceType": "vpc", "Tags": [{"Key": "cdk-training-cluster:cluster", "Value": NAME}]}]
    return str(aws.client("ec2").create_vpc(CidrBlock="10.9.0.0/24", TagSpecifications=tags)["Vpc"]["VpcId"])


def test_what_is_left_is_listed_with_the_command_that_deletes_it(account: LocalAws, tmp_path: Path) -> None:
    # Of a check that was cut off, by a version with other questions.
    stray = json.dumps({"Resources": {"Alerts": {"Type": "AWS::SNS::Topic"}}})
    account.client("cloudformation").create_stack(StackName=f"{NAME}-stray", TemplateBody=stray)
    ec2, vpc = account.client("ec2"), _vpc(account)
    subnet = ec2.create_subnet(VpcId=vpc, CidrBlock="10.9.0.0/25")["Subnet"]["SubnetId"]
    interface = ec2.create_network_interface(SubnetId=subnet)["NetworkInterface"]["NetworkInterfaceId"]
    ended = _live(tmp_path, account.environment(), "--delete")
    assert ended.returncode == 1
    assert f"left: VPCs: {vpc}\n" in ended.stdout
    assert f"{NAME}-stray" not in _stacks(account)
    assert ended.stdout.endswith(f"It may bill. Delete it with: {_DELETE}\n")
    ec2.delete_network_interface(NetworkInterfaceId=interface)
    ended = _live(tmp_path, account.environment(), "--delete")
    assert (ended.returncode, ended.stdout.splitlines()[-1]) == (0, "Nothing is left of it.")


def test_where_it_cannot_look_it_says_so_with_what_it_could_see(account: LocalAws, tmp_path: Path) -> None:
    vpc = _vpc(account)
    unreachable = {"AWS_ENDPOINT_URL_FSX": "http://127.0.0.1:1", "AWS_MAX_ATTEMPTS": "1"}
    ended = _live(tmp_path, {**account.environment(), **unreachable}, "--delete")
    assert (ended.returncode, "Traceback" in ended.stderr) == (1, False)
    assert "left: could not look for file systems: Could not connect" in ended.stdout
    assert ended.stdout.endswith(f"It may bill. Delete it with: {_DELETE}\n")
    assert not account.client("ec2").describe_vpcs(Filters=[{"Name": "vpc-id", "Values": [vpc]}])["Vpcs"]


def test_ids_and_arns_are_told_by_the_names_of_what_they_are_of(account: LocalAws) -> None:
    topic = {"Type": "AWS::SNS::Topic"}
    alarm = {
        "Type": "AWS::CloudWatch::Alarm",
        "Properties": {
            **{"Namespace": "AWS/Lambda", "MetricName": "Errors", "Statistic": "Sum", "Threshold": 1, "Period": 60},
            **{"EvaluationPeriods": 1, "ComparisonOperator": "GreaterThanThreshold"},
            "AlarmActions": [{"Fn::ImportValue": "of-facts"}],
        },
    }
    export = {"Value": {"Ref": "Alerts"}, "Export": {"Name": "of-facts"}}
    cloudformation = account.client("cloudformation")
    used = json.dumps({"Resources": {"Alerts": topic}, "Outputs": {"Alerts": export}})
    cloudformation.create_stack(StackName="used", TemplateBody=used)
    cloudformation.create_stack(StackName="facts", TemplateBody=json.dumps({"Resources": {"Watch": alarm}}))
    facts = read_facts(account.client, "facts", account.account, uses="used")
    for name in ("facts", "used"):
        cloudformation.delete_stack(StackName=name)
    (said,) = facts["Watch (AWS::CloudWatch::Alarm)"]
    assert said["AlarmActions"] == ["<Alerts>"]


_FACTS = {"Held (T)": {"Size": 1}}
_OTHER = {"Held (T)": {"Size": 2}}


@pytest.mark.parametrize(
    ("local", "found", "verdict", "sentences", "expected"),
    [
        (Deployed(facts=_FACTS), Deployed(facts=_FACTS), "accepted", [], True),
        (
            Deployed(facts=_FACTS),
            Deployed(facts=_OTHER),
            "differs",
            ["Held (T): Size is 2 on AWS, 1 on the local AWS"],
            False,
        ),
        (Deployed(refusals=["no"]), Deployed(refusals=["No."]), "refused", ["No."], True),
        (Deployed(), Deployed(refusals=["No."]), "refused", ["No."], False),
        (Deployed(refusals=["no"]), Deployed(facts=_FACTS), "differs", ["the local AWS refuses it: no"], False),
        (Deployed(answers=["it is 1"]), Deployed(answers=["it is 1"]), "accepted", ["it is 1"], True),
        (
            Deployed(answers=["it is 0"]),
            Deployed(answers=["it is 1"]),
            "differs",
            ["it is 1", "on the local AWS it is 0"],
            False,
        ),
        (Deployed(), None, "not asked", [], False),
    ],
)
def test_each_stack_is_settled_beside_the_local_aws(
    local: Deployed, found: Deployed | None, verdict: str, sentences: list[str], expected: bool
) -> None:
    outcome = judge("Does it?", local, found)
    assert (outcome.verdict.value, list(outcome.sentences), outcome.expected) == (verdict, sentences, expected)


def test_each_difference_is_a_sentence() -> None:
    local = {"Held (T)": {"Size": 1, "Groups": [{"Id": "<G>"}], "None": None}, "Gone (T)": {}, "Same (T)": [1]}
    found = {"Held (T)": {"Size": 2, "Groups": [{"Id": "<H>"}], "More": 1}, "Same (T)": [1]}
    assert fact_differences(local, found) == [
        "Held (T): Size is 2 on AWS, 1 on the local AWS",
        'Held (T): Groups[0].Id is "<H>" on AWS, "<G>" on the local AWS',
        "Gone (T): it is not there",
    ]
