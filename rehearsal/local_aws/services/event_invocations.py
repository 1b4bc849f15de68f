"""What Lambda does with an event that a function cannot handle, and what it refuses to be told to do with it.

https://docs.aws.amazon.com/lambda/latest/dg/invocation-async-retain-records.html
"""

import json
from collections.abc import Callable, Mapping
from functools import wraps
from typing import Any

from moto.core.utils import utcnow

from rehearsal.functions import Outcome
from rehearsal.local_aws import sessions
from rehearsal.local_aws.policies import Call, is_allowed
from rehearsal.local_aws.refusal import Refusal
from rehearsal.local_aws.services import keys
from rehearsal.local_aws.services.roles import statements_of

# The retries of an event where nothing else is set.
_RETRIES = 2
_ACTIONS = {"sqs": "SendMessage", "sns": "Publish"}


def checked(original: Callable[..., Any]) -> Callable[..., Any]:
    """Return PutFunctionEventInvokeConfig so that it asks for the role's permission, and replaces what was set."""

    @wraps(original)
    def put_function_event_invoke_config(backend: Any, function_name: str, config: Mapping[str, Any]) -> Any:
        function = backend.get_function(function_name)
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
        function.event_invoke_config.clear()
        return original(backend, function_name, config)

    return put_function_event_invoke_config


def retries(function: Any) -> int:
    """Return how often an event that fails is tried again."""
    return int(_config(function).get("MaximumRetryAttempts", _RETRIES))


def keep_failed(function: Any, region: str, event: Any, outcome: Outcome, endpoint_url: str) -> None:
    """Send the record of an event that failed each time to where failed ones go; without such a place it is lost."""
    destination = _config(function).get("DestinationConfig", {}).get("OnFailure", {}).get("Destination")
    if not destination:
        return
    record = {
        "version": "1.0",
        "timestamp": utcnow().isoformat(),
        "requestContext": {
            "functionArn": f"{function.function_arn}:$LATEST",
            "condition": "RetriesExhausted",
            "approximateInvokeCount": 1 + retries(function),
        },
        "requestPayload": event,
        "responseContext": {"statusCode": 200, "executedVersion": "$LATEST", "functionError": "Unhandled"},
        "responsePayload": outcome.error,
    }
    service, name = destination.split(":")[2], destination.rpartition(":")[2]
    client = sessions.client(service, endpoint_url, region)
    if service == "sns":
        client.publish(TopicArn=destination, Message=json.dumps(record))
    else:
        client.send_message(QueueUrl=client.get_queue_url(QueueName=name)["QueueUrl"], MessageBody=json.dumps(record))


def _config(function: Any) -> Mapping[str, Any]:
    configs = function.event_invoke_config
    return configs[0].config if configs else {}


def _destinations(config: Mapping[str, Any]) -> list[str]:
    return [one["Destination"] for one in config.get("DestinationConfig", {}).values() if one.get("Destination")]
