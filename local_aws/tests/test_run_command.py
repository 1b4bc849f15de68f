"""Run Command: which documents there can be, which nodes can be reached, and what becomes of a command."""

import copy
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from botocore.exceptions import ClientError

from local_aws import LocalAws
from local_aws_scene import NODES, X86_IMAGE, Stacks, Template

_LINES = ['$ROOT/usr/local/bin/say "{{ Word }} from ${ROOT##*/}"', "cat fsx/note >&2", "exit {{ Code }}"]


def _content(**changes: Any) -> dict[str, Any]:
    parameters = {
        "Word": {"type": "String", "allowedPattern": "^[a-z]+$"},
        "Code": {"type": "String", "default": "0"},
    }
    inputs = {"timeoutSeconds": "20", "runCommand": _LINES, **changes.pop("inputs", {})}
    step = {"action": "aws:runShellScript", "name": "Run", "inputs": inputs}
    return {"schemaVersion": "2.2", "parameters": parameters, "mainSteps": [step], **changes}


def _template(content: dict[str, Any]) -> Template:
    properties = {"DocumentType": "Command", "UpdateMethod": "NewVersion", "Content": content}
    return {"Resources": {"Document": {"Type": "AWS::SSM::Document", "Properties": properties}}}


@pytest.fixture(scope="module")
def running(aws: LocalAws, tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[str]]:
    """Four nodes that run, of which the stack goes at the end."""
    scene = Stacks(aws)
    template = copy.deepcopy(NODES)
    template["Resources"]["Nodes"]["Properties"]["MinSize"] = "4"
    name = scene.create(template)
    assert scene.reasons(name) == {}
    ids = scene.physical_ids(name)
    group = aws.client("autoscaling").describe_auto_scaling_groups(AutoScalingGroupNames=[ids["Nodes"]])
    programs = tmp_path_factory.mktemp("node") / "usr" / "local" / "bin"
    programs.mkdir(parents=True)
    (programs / "say").symlink_to("/bin/echo")
    aws.set_up_nodes(root=programs.parents[2], mounts={"/fsx": ids["Files"]}, runs_any_shell=True)
    (aws.file_system_directory(ids["Files"]) / "files" / "note").write_text("seen")
    yield [one["InstanceId"] for one in group["AutoScalingGroups"][0]["Instances"]]
    aws.set_up_nodes()
    scene.clean_up()


@pytest.fixture
def document(stacks: Stacks) -> str:
    name = stacks.create(_template(_content()))
    assert stacks.reasons(name) == {}
    return stacks.physical_ids(name)["Document"]


def _send(aws: LocalAws, document: str, ids: list[str], **more: Any) -> str:
    request = {"Parameters": {"Word": ["hello"]}, **more}
    return str(
        aws.client("ssm").send_command(DocumentName=document, InstanceIds=ids, **request)["Command"]["CommandId"]
    )


def _ended(aws: LocalAws, command: str, instance: str) -> dict[str, Any]:
    return dict(aws.client("ssm").get_command_invocation(CommandId=command, InstanceId=instance))


def test_each_node_runs_the_lines_with_its_own_root_and_file_system(
    aws: LocalAws, running: list[str], document: str
) -> None:
    command = _send(aws, document, running[:2])
    for one in running[:2]:
        told = _ended(aws, command, one)
        assert (told["Status"], told["ResponseCode"]) == ("Success", 0)
        assert (told["StandardOutputContent"], told["StandardErrorContent"]) == (f"hello from {one}\n", "seen")
    listed = aws.client("ssm").list_command_invocations(CommandId=command, Details=True)["CommandInvocations"]
    assert [one["CommandPlugins"][0]["Output"] for one in listed] == [f"hello from {one}\n" for one in running[:2]]
    failed = _ended(aws, _send(aws, document, running[:1], Parameters={"Word": ["a"], "Code": ["3"]}), running[0])
    assert (failed["Status"], failed["StatusDetails"], failed["ResponseCode"]) == ("Failed", "Failed", 3)


def test_aws_s_own_document_runs_any_lines_where_a_test_asks_for_it(aws: LocalAws, running: list[str]) -> None:
    lines = {"commands": ["echo one", "exit 3"], "executionTimeout": ["20"]}
    command = _send(aws, "AWS-RunShellScript", running[:1], Parameters=lines)
    ended = _ended(aws, command, running[0])
    assert (ended["StandardOutputContent"], ended["ResponseCode"], ended["Status"]) == ("one\n", 3, "Failed")
    with pytest.raises(ClientError, match="executionTimeout"):
        _send(aws, "AWS-RunShellScript", running[:1], Parameters={**lines, "executionTimeout": ["172801"]})


def test_a_new_version_runs_by_its_name_where_the_default_is_still_the_old_one(
    aws: LocalAws, running: list[str], document: str
) -> None:
    content = json.dumps(_content(inputs={"runCommand": ["echo new"]}))
    aws.client("ssm").update_document(Name=document, Content=content, DocumentVersion="$LATEST")
    for version, says in (("$DEFAULT", f"hello from {running[0]}\n"), ("$LATEST", "new\n")):
        told = _ended(aws, _send(aws, document, running[:1], DocumentVersion=version), running[0])
        assert told["StandardOutputContent"] == says


def test_output_is_cut_and_a_command_that_does_not_end_times_out(
    aws: LocalAws, running: list[str], stacks: Stacks
) -> None:
    lines = ["printf %30000d 1", "printf %30000d 1 >&2"]
    told = []
    for inputs in ({"runCommand": lines}, {"runCommand": ["exec sleep 60"], "timeoutSeconds": "1"}):
        made = stacks.physical_ids(stacks.create(_template(_content(inputs=inputs))))["Document"]
        told.append(_ended(aws, _send(aws, made, running[:1]), running[0]))
    assert [len(told[0][f"Standard{name}Content"]) for name in ("Output", "Error")] == [24_000, 8_000]
    assert (told[1]["Status"], told[1]["StatusDetails"], told[1]["ResponseCode"]) == (
        "TimedOut",
        "ExecutionTimedOut",
        -1,
    )


@pytest.mark.parametrize(
    ("fate", "status"),
    [
        *((details, details) for details in ("Pending", "InProgress", "Delayed", "Cancelled", "Failed")),
        *(("Undeliverable", "Failed"), ("DeliveryTimedOut", "TimedOut"), ("ExecutionTimedOut", "TimedOut")),
    ],
)
def test_a_command_has_the_fate_that_was_ordered(
    aws: LocalAws, running: list[str], document: str, fate: str, status: str
) -> None:
    aws.set_node(running[0], fate=fate)
    told = _ended(aws, _send(aws, document, running[:1]), running[0])
    aws.set_node(running[0])
    assert (told["Status"], told["StatusDetails"], told["StandardOutputContent"]) == (status, fate, "")


def test_only_nodes_that_run_and_are_connected_take_commands(
    aws: LocalAws, running: list[str], document: str
) -> None:
    ssm, gone = aws.client("ssm"), running[3]
    shown = {
        one["InstanceId"]: one["PingStatus"] for one in ssm.describe_instance_information()["InstanceInformationList"]
    }
    assert {one: shown[one] for one in running} == dict.fromkeys(running, "Online")
    command = _send(aws, document, [gone])
    aws.client("ec2").terminate_instances(InstanceIds=[gone])
    assert _ended(aws, command, gone)["Status"] == "InProgress"
    aws.set_node(running[0], online=False)
    by_ping = [{"Key": "PingStatus", "Values": ["ConnectionLost"]}]
    lost = ssm.describe_instance_information(Filters=by_ping)["InstanceInformationList"]
    assert [one["InstanceId"] for one in lost] == running[:1]
    for unreachable in (running[0], gone, "i-0123456789abcdef0"):
        with pytest.raises(ClientError, match="InvalidInstanceId") as refused:
            _send(aws, document, [running[1], unreachable])
        assert f"Instances [[{unreachable}]] not in a valid state" in str(refused.value)
    aws.set_node(running[0])


@pytest.mark.parametrize(("region", "count"), [("eu-west-1", 1), ("us-east-1", 0)])
def test_a_node_registers_in_the_region_that_its_role_allows(tmp_path: Path, region: str, count: int) -> None:
    with LocalAws(tmp_path / "log.txt", region="eu-west-1") as aws:
        iam, ec2, ssm = (aws.client(name) for name in ("iam", "ec2", "ssm"))
        trust = {"Effect": "Allow", "Action": "sts:AssumeRole", "Principal": {"Service": "ec2.amazonaws.com"}}
        iam.create_role(RoleName="node", AssumeRolePolicyDocument=json.dumps({"Statement": [trust]}))
        register = {"Effect": "Allow", "Action": "ssm:UpdateInstanceInformation", "Resource": "*"}
        policy = {
            "Version": "2012-10-17",
            "Statement": [{**register, "Condition": {"StringEquals": {"aws:RequestedRegion": region}}}],
        }
        iam.put_role_policy(RoleName="node", PolicyName="register", PolicyDocument=json.dumps(policy))
        iam.create_instance_profile(InstanceProfileName="node")
        iam.add_role_to_instance_profile(InstanceProfileName="node", RoleName="node")
        image = ssm.get_parameter(Name=X86_IMAGE)["Parameter"]["Value"]
        launch = {"ImageId": image, "InstanceType": "g5.xlarge", "MinCount": 1, "MaxCount": 1}
        subnet = ec2.describe_subnets()["Subnets"][0]["SubnetId"]
        ec2.run_instances(**launch, SubnetId=subnet, IamInstanceProfile={"Name": "node"})
        assert len(ssm.describe_instance_information()["InstanceInformationList"]) == count


@pytest.mark.parametrize(
    ("request_", "code"),
    [
        ({"Parameters": {"Word": ["UPPER"]}}, "InvalidParameters"),
        ({"Parameters": {}}, "InvalidParameters"),
        ({"Parameters": {"Word": ["a"], "Other": ["b"]}}, "InvalidParameters"),
        ({"DocumentName": "none-such"}, "InvalidDocument"),
        ({"DocumentVersion": "7"}, "InvalidDocumentVersion"),
        ({"InstanceIds": [f"i-{number:017x}" for number in range(51)]}, "ValidationException"),
        ({"InstanceIds": ["i-0123456789abcdef0"] * 2}, "DuplicateInstanceId"),
    ],
    ids=lambda value: value if isinstance(value, str) else "-".join(value),
)
def test_a_command_that_cannot_be_is_refused(
    aws: LocalAws, running: list[str], document: str, request_: dict[str, Any], code: str
) -> None:
    usual = {"DocumentName": document, "InstanceIds": running[:1], "Parameters": {"Word": ["hello"]}}
    with pytest.raises(ClientError) as refused:
        aws.client("ssm").send_command(**{**usual, **request_})
    assert refused.value.response["Error"]["Code"] == code


def test_an_unknown_invocation_does_not_exist(aws: LocalAws) -> None:
    with pytest.raises(ClientError, match="InvocationDoesNotExist"):
        _ended(aws, "0" * 36, "i-0123456789abcdef0")


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"schemaVersion": "0.3"}, "The schema version of a Command document here is 2.2, not 0.3."),
        ({"parameters": {}}, "names the parameter Code, which the document does not have"),
        ({"parameters": {"Word": {"type": "Text"}}}, "The parameter Word has the type Text"),
        (
            {"parameters": {"Word": {"type": "String", "allowedPattern": "^a$", "default": "b"}}},
            "The default of the parameter Word does not match ^a$.",
        ),
        ({"mainSteps": []}, "A document has at least one step"),
        ({"mainSteps": _content()["mainSteps"] * 2}, "must be there and unique, unlike Run"),
        ({"inputs": {"runCommand": "ls"}}, "needs runCommand, a list of lines"),
    ],
    ids=lambda value: next(iter(value)) if isinstance(value, dict) else "",
)
def test_a_document_that_cannot_be_is_refused(stacks: Stacks, changes: dict[str, Any], reason: str) -> None:
    name = stacks.create(_template(_content(**copy.deepcopy(changes))))
    assert reason in stacks.reasons(name)["Document"]


def test_a_new_version_is_the_default(aws: LocalAws, running: list[str], stacks: Stacks) -> None:
    name = stacks.create(_template(_content()))
    document = stacks.physical_ids(name)["Document"]
    stacks.update(name, _template(_content(inputs={"runCommand": ["echo {{ Word }} again; : {{ Code }}"]})))
    assert stacks.physical_ids(name)["Document"] == document
    told = [
        _ended(aws, _send(aws, document, running[:1], **more), running[0]) for more in ({}, {"DocumentVersion": "1"})
    ]
    assert [one["StandardOutputContent"] for one in told] == ["hello again\n", f"hello from {running[0]}\n"]


def test_what_a_user_sends_runs_only_where_a_test_asks_for_it(tmp_path: Path) -> None:
    sent = {"DocumentName": "AWS-RunShellScript", "InstanceIds": ["i-0123456789abcdef0"]}
    with (
        LocalAws(tmp_path / "log.txt") as aws,
        pytest.raises(ClientError, match="its lines would run on this machine"),
    ):
        aws.client("ssm").send_command(**sent, Parameters={"commands": ["true"]})
