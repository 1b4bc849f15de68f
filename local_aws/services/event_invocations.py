"""What Lambda does with an event that a function cannot handle, and which settings for it Lambda refuses.

https://docs.aws.amazon.com/lambda/latest/dg/invocation-async-retain-records.html
"""

import json
import re
from collections.abc import Callable, Mapping
from functools import wraps
from typing import Any
from urllib.parse import unquote

from moto.awslambda.exceptions import UnknownEventConfig
from moto.awslambda.models import EventInvokeConfig
from moto.core.responses import ActionResult
from moto.core.utils import utcnow

from local_aws import sessions
from local_aws.functions import Outcome
from local_aws.policies import Call, is_allowed
from local_aws.refusal import Refusal
from local_aws.services import keys
from local_aws.services.roles import statements_of

# The retries of an event where nothing else is set.
_RETRIES = 2
_ACTIONS = {"sqs": "SendMessage", "sns": "Publish"}


def put_config(response: Any) -> ActionResult:
    """Answer PutFunctionEventInvokeConfig, which asks for the role's permission, and replaces what was set.

    A version or an alias has a configuration of its own, or none: that of the function says nothing of it.
    https://docs.aws.amazon.com/lambda/latest/api/API_PutFunctionEventInvokeConfig.html
    """
    function, arn = _configured(response)
    config = response.json_body
    for destination in _destinations(config):
        service = destination.split(":")[2]
        action = _ACTIONS[service]
        call = Call(action=f"{service}:{action}", resource=destination)
        if not is_allowed(statements_of(function.role), call):
            raise Refusal(
                "InvalidParameterValueException",
                f"The function's execution role does not have permissions to call {action} on {destination}",
            )
        keys.check_destination(function, destination)
    made = EventInvokeConfig(arn, function.last_modified, config)
    function.event_invoke_config[:] = [one for one in function.event_invoke_config if one.arn != arn] + [made]
    return ActionResult(made.response())


def permitted(original: Callable[..., Any]) -> Callable[..., Any]:
    """Return AddPermission so that what names an alias allows no call of the function itself, nor of another alias.

    https://docs.aws.amazon.com/lambda/latest/dg/access-control-resource-based.html
    """

    @wraps(original)
    def add_permission(backend: Any, function_name: str, qualifier: str | None, raw: str) -> dict[str, Any]:
        name, _, alias = function_name.rpartition(":function:")[2].partition(":")
        statement: dict[str, Any] = original(backend, name, None, raw)
        named = qualifier or alias
        if named:
            statement["Resource"] = f"{statement['Resource']}:{named}"
        return statement

    return add_permission


def get_config(response: Any) -> ActionResult:
    """Answer GetFunctionEventInvokeConfig."""
    return ActionResult(_found(*_configured(response)).response())


def delete_config(response: Any) -> tuple[int, dict[str, Any], str]:
    """Answer DeleteFunctionEventInvokeConfig."""
    function, arn = _configured(response)
    function.event_invoke_config.remove(_found(function, arn))
    return 204, {"status": 204}, "{}"


def qualified(response: Any) -> tuple[Any, str]:
    """Return the function that a request names, and the alias, if any; it can stand in the name, too."""
    name = unquote(response.path.rstrip("/").rsplit("/", 2)[-2])
    found = re.fullmatch(r"(arn:aws[a-z-]*:lambda:.*:function:[^:]+|[^:]+)(?::([^:]+))?", name)
    qualifier = (found and found[2]) or response._get_param("Qualifier")
    function = response.backend.get_function(found[1] if found else name, qualifier)
    return function, "" if qualifier in (None, "$LATEST") else qualifier


def retries(function: Any, alias: str) -> int:
    """Return how often an event that fails is tried again."""
    return int(_config(function, alias).get("MaximumRetryAttempts", _RETRIES))


def keep_failed(function: Any, alias: str, event: Any, outcome: Outcome, endpoint_url: str) -> None:
    """Send the record of an event that failed each time to where failed ones go; without such a place it is lost."""
    destination = _config(function, alias).get("DestinationConfig", {}).get("OnFailure", {}).get("Destination")
    if not destination:
        return
    record = {
        "version": "1.0",
        "timestamp": utcnow().isoformat(),
        "requestContext": {
            "functionArn": _arn(function, alias),
            "condition": "RetriesExhausted",
            "approximateInvokeCount": 1 + retries(function, alias),
        },
        "requestPayload": event,
        "responseContext": {"statusCode": 200, "executedVersion": "$LATEST", "functionError": "Unhandled"},
        "responsePayload": outcome.error,
    }
    service, name = destination.split(":")[2], destination.rpartition(":")[2]
    client = sessions.client(service, endpoint_url, destination.split(":")[3])
    if service == "sns":
        client.publish(TopicArn=destination, Message=json.dumps(record))
    else:
        client.send_message(QueueUrl=client.get_queue_url(QueueName=name)["QueueUrl"], MessageBody=json.dumps(record))


def _arn(function: Any, alias: str) -> str:
    return f"{function.function_arn}:{alias or '$LATEST'}"


def _configured(response: Any) -> tuple[Any, str]:
    function, alias = qualified(response)
    return function, _arn(function, alias)


def _found(function: Any, arn: str) -> Any:
    found = next((one for one in function.event_invoke_config if one.arn == arn), None)
    if found is None:
        raise UnknownEventConfig(arn)
    return found


def _config(function: Any, alias: str) -> Mapping[str, Any]:
    arn = _arn(function, alias)
    return next((one.config for one in function.event_invoke_config if one.arn == arn), {})


def _destinations(config: Mapping[str, Any]) -> list[str]:
    return [one["Destination"] for one in config.get("DestinationConfig", {}).values() if one.get("Destination")]
