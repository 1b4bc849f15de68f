"""What Amazon Managed Service for Prometheus refuses of rules, alert managers and retention."""

from collections.abc import Callable
from typing import Any

import pytest
from botocore.exceptions import ClientError

from local_aws import LocalAws

_RULES = b"groups: [{name: a, rules: [{record: a, expr: b}]}]"
_SNS = "{topic_arn: 'arn:aws:sns:us-east-1:123456789012:t', sigv4: {region: us-east-1}}"


def _manager(receiver: str) -> bytes:
    text = f"  route: {{receiver: r}}\n  receivers: [{{name: r, {receiver}}}]\n"
    return f"alertmanager_config: |\n{text}".encode()


_REFUSED: dict[str, tuple[Callable[[Any, str], Any], str, str]] = {
    "rules of another kind": (
        lambda amp, made: amp.create_rule_groups_namespace(workspaceId=made, name="b", data=b"rules: []"),
        "ValidationException",
        "groups with rules are required",
    ),
    "a name twice": (
        lambda amp, made: amp.create_rule_groups_namespace(workspaceId=made, name="a", data=_RULES),
        "ConflictException",
        "already exists",
    ),
    "no workspace": (
        lambda amp, _: amp.create_rule_groups_namespace(workspaceId="ws-0", name="a", data=_RULES),
        "ResourceNotFoundException",
        "",
    ),
    "a key that is not there": (
        lambda amp, _: amp.create_workspace(kmsKeyArn=f"arn:aws:kms:us-east-1:123456789012:key/{'0' * 36}"),
        "ValidationException",
        "does not exist",
    ),
    "another receiver": (
        lambda amp, made: amp.create_alert_manager_definition(workspaceId=made, data=_manager("email_configs: []")),
        "ValidationException",
        "only sns_configs is supported",
    ),
    "a topic without a region": (
        lambda amp, made: amp.create_alert_manager_definition(
            workspaceId=made, data=_manager("sns_configs: [{topic_arn: t}]")
        ),
        "ValidationException",
        "must have topic_arn and sigv4.region",
    ),
    "no alert manager": (
        lambda amp, made: amp.describe_alert_manager_definition(workspaceId=made),
        "ResourceNotFoundException",
        "not found",
    ),
    "too many days": (
        lambda amp, made: amp.update_workspace_configuration(workspaceId=made, retentionPeriodInDays=1096),
        "ValidationException",
        "between 1 and 1095",
    ),
}


@pytest.mark.parametrize("which", _REFUSED)
def test_it_refuses(aws: LocalAws, which: str) -> None:
    ask, code, said = _REFUSED[which]
    amp = aws.client("amp")
    workspace = amp.create_workspace(alias="pod")["workspaceId"]
    amp.create_rule_groups_namespace(workspaceId=workspace, name="a", data=_RULES)
    with pytest.raises(ClientError) as refused:
        ask(amp, workspace)
    error = refused.value.response["Error"]
    assert error["Code"] == code
    assert said in error["Message"]


def test_a_workspace_has_one_alert_manager(aws: LocalAws) -> None:
    amp = aws.client("amp")
    workspace = amp.create_workspace(alias="pod")["workspaceId"]
    definition = _manager(f"sns_configs: [{_SNS}]")
    amp.create_alert_manager_definition(workspaceId=workspace, data=definition)
    with pytest.raises(ClientError, match="ConflictException"):
        amp.create_alert_manager_definition(workspaceId=workspace, data=definition)
    amp.delete_alert_manager_definition(workspaceId=workspace)
    amp.create_alert_manager_definition(workspaceId=workspace, data=definition)
