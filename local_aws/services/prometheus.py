"""Amazon Managed Service for Prometheus: alert managers and retention, which moto lacks, and what it refuses.

Sources: https://docs.aws.amazon.com/prometheus/latest/userguide/AMP-alertmanager-receiver-config.html,
https://docs.aws.amazon.com/prometheus/latest/userguide/AMP-ruler-rulesfile.html and
https://docs.aws.amazon.com/prometheus/latest/userguide/AMP_quotas.html
"""

import base64
import json
from collections.abc import Callable, Iterator, Mapping
from functools import wraps
from typing import Any

import yaml

from local_aws.refusal import Refusal
from local_aws.services.keys import exists

_MOST_DAYS = 1095
# The quotas on the size of a rules file and of an alert manager's definition.
_MOST_BYTES = 1_000_000
_REFUSED_OF_SNS = ("api_url", "http_config")


def checked_workspace(original: Callable[[Any], str]) -> Callable[[Any], str]:
    """Return CreateWorkspace so that it looks for the key first."""

    @wraps(original)
    def create_workspace(response: Any) -> str:
        key = json.loads(response.body).get("kmsKeyArn")
        if key and not exists(key, response.current_account, response.region):
            raise Refusal("ValidationException", f"The KMS key {key} does not exist in {response.region}")
        return original(response)

    return create_workspace


def checked_rules(original: Callable[[Any], str]) -> Callable[[Any], str]:
    """Return an action on rules so that it reads them first."""

    @wraps(original)
    def action(response: Any) -> str:
        given = json.loads(response.body)
        groups = _document(given["data"]).get("groups")
        if not isinstance(groups, list) or not all("rules" in group for group in groups):
            raise Refusal("ValidationException", "error parsing rules: groups with rules are required")
        workspace = response.amp_backend.describe_workspace(_workspace_id(response))
        if given.get("name") in workspace.rule_group_namespaces:
            raise Refusal("ConflictException", f"Rule groups namespace {given['name']} already exists")
        return original(response)

    return action


def create_alert_manager_definition(response: Any) -> str:
    """Give a workspace an alert manager; it has one at most."""
    workspace = response.amp_backend.describe_workspace(_workspace_id(response))
    if getattr(workspace, "alert_manager", None) is not None:
        raise Refusal("ConflictException", "An alert manager definition already exists")
    return put_alert_manager_definition(response)


def put_alert_manager_definition(response: Any) -> str:
    """Change the alert manager of a workspace."""
    data = json.loads(response.body)["data"]
    workspace = response.amp_backend.describe_workspace(_workspace_id(response))
    for problem in _problems(_document(data)):
        raise Refusal("ValidationException", problem)
    workspace.alert_manager = data
    return json.dumps({"status": {"statusCode": "ACTIVE"}})


def describe_alert_manager_definition(response: Any) -> str:
    """Say what the alert manager of a workspace is."""
    workspace = response.amp_backend.describe_workspace(_workspace_id(response))
    data = getattr(workspace, "alert_manager", None)
    if data is None:
        raise Refusal("ResourceNotFoundException", "Alert manager definition not found")
    times = {"createdAt": workspace.created_at, "modifiedAt": workspace.created_at}
    return json.dumps({"alertManagerDefinition": {"status": {"statusCode": "ACTIVE"}, "data": data, **times}})


def delete_alert_manager_definition(response: Any) -> str:
    """Take the alert manager of a workspace away."""
    describe_alert_manager_definition(response)
    response.amp_backend.describe_workspace(_workspace_id(response)).alert_manager = None
    return "{}"


def update_workspace_configuration(response: Any) -> str:
    """Change for how long a workspace keeps samples."""
    workspace = response.amp_backend.describe_workspace(_workspace_id(response))
    given = json.loads(response.body)
    days = given.get("retentionPeriodInDays", 1)
    if not 1 <= days <= _MOST_DAYS:
        raise Refusal("ValidationException", f"retentionPeriodInDays must be between 1 and {_MOST_DAYS}")
    kept = {name: value for name, value in given.items() if name != "clientToken"}
    workspace.configuration = {**getattr(workspace, "configuration", {}), **kept}
    return json.dumps({"status": {"statusCode": "ACTIVE"}})


def describe_workspace_configuration(response: Any) -> str:
    """Say for how long a workspace keeps samples; 150 days unless it was said otherwise."""
    workspace = response.amp_backend.describe_workspace(_workspace_id(response))
    said = {"retentionPeriodInDays": 150, **getattr(workspace, "configuration", {})}
    return json.dumps({"workspaceConfiguration": {"status": {"statusCode": "ACTIVE"}, **said}})


def _workspace_id(response: Any) -> str:
    return str(response.path.split("/workspaces/")[1].split("/")[0])


def _document(data: str) -> Mapping[str, Any]:
    text = base64.b64decode(data).decode()
    if len(text) > _MOST_BYTES:
        raise Refusal("ValidationException", f"data must be at most {_MOST_BYTES} bytes")
    try:
        content = yaml.safe_load(text)
    except yaml.YAMLError as error:
        raise Refusal("ValidationException", f"error parsing YAML: {error}") from None
    if not isinstance(content, dict):
        raise Refusal("ValidationException", "error parsing YAML: a mapping is required")
    return content


def _problems(definition: Mapping[str, Any]) -> Iterator[str]:
    """Yield why an alert manager's definition is refused: SNS is the one receiver, in its region."""
    said = yaml.safe_load(definition.get("alertmanager_config") or "") or {}
    if "route" not in said or not said.get("receivers"):
        yield "alertmanager_config must have a route and receivers"
    for receiver in said.get("receivers", ()):
        if set(receiver) - {"name", "sns_configs"}:
            yield f"receiver {receiver['name']}: only sns_configs is supported"
        for sns in receiver.get("sns_configs", ()):
            yield from (f"{name} is not allowed in sns_configs" for name in _REFUSED_OF_SNS if name in sns)
            if not sns.get("topic_arn") or not sns.get("sigv4", {}).get("region"):
                yield "sns_configs must have topic_arn and sigv4.region"
