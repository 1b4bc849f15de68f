"""The user's AWS settings are named, so that a user sees which were used."""

from pathlib import Path

from rehearsal.user_environment import aws_settings


def test_variables_and_files_are_named(tmp_path: Path) -> None:
    (tmp_path / ".aws").mkdir()
    (tmp_path / ".aws" / "credentials").touch()
    environment = {"AWS_PROFILE": "prod", "AWS_ACCESS_KEY_ID": "AKIA", "CDK_DEFAULT_REGION": "eu-west-1", "HOME": "/"}
    assert aws_settings(environment, tmp_path) == [
        "AWS_ACCESS_KEY_ID",
        "AWS_PROFILE",
        "CDK_DEFAULT_REGION",
        "~/.aws/credentials",
    ]


def test_there_may_be_none(tmp_path: Path) -> None:
    assert aws_settings({"HOME": "/", "PATH": "/bin"}, tmp_path) == []
