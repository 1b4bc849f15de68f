"""What ends a program in one sentence, and what keeps its traceback."""

import jsii
import pytest
from aws_cdk import App, Stack
from aws_cdk import aws_ec2 as ec2
from botocore.exceptions import ClientError
from constructs import IValidation

from cdk_training_cluster_stacks.problems import ClusterFileError, Problem, plain_errors


@jsii.implements(IValidation)
class Refusal:
    def validate(self) -> list[str]:
        return ["the one thing is wrong: mend it", "so is the other"]


def test_a_problem_says_where_it_is() -> None:
    problems = [
        Problem(message="is wrong", where=("node_groups", 1, "environment", "A"), line=7),
        Problem(message="has no value", where=("tags", "a key")),
        Problem(message="is empty"),
    ]
    assert str(ClusterFileError("a.yaml", problems)) == (
        'a.yaml:7: node_groups[1].environment.A: is wrong\na.yaml: tags["a key"]: has no value\na.yaml: is empty'
    )


def test_each_sentence_of_a_construct_is_an_error(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as end, plain_errors():
        raise ValueError("count must be at least 1, got 0\nname must not be empty")
    assert end.value.code == 1
    assert capsys.readouterr().err == ("error: count must be at least 1, got 0\nerror: name must not be empty\n")


def test_what_cdk_refuses_is_a_sentence(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit), plain_errors():
        ec2.Peer.ipv4("10.0.0/8")
    assert capsys.readouterr().err == 'error: Invalid IPv4 CIDR: "10.0.0/8"\n'


def test_what_cdk_finds_in_the_whole_is_a_sentence_each(capsys: pytest.CaptureFixture[str]) -> None:
    app = App()
    Stack(app, "Pod").node.add_validation(Refusal())
    with pytest.raises(SystemExit), plain_errors():
        app.synth()
    assert capsys.readouterr().err == ("error: [Pod] the one thing is wrong: mend it\nerror: [Pod] so is the other\n")


def test_what_aws_refuses_is_a_sentence_with_status_2(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as end, plain_errors():
        raise ClientError({"Error": {"Code": "AccessDenied", "Message": "no"}}, "DescribeInstances")
    assert end.value.code == 2
    assert capsys.readouterr().err.startswith("error: AWS denies DescribeInstances (AccessDenied): ")


def test_a_defect_keeps_its_traceback() -> None:
    with pytest.raises(RuntimeError, match="a defect"), plain_errors():
        raise RuntimeError("a defect")
    with pytest.raises(KeyError), plain_errors():
        raise KeyError("a defect")


def test_debugging_shows_all_tracebacks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CDK_DEBUG", "true")
    with pytest.raises(ValueError, match="wrong"), plain_errors():
        raise ValueError("wrong")
