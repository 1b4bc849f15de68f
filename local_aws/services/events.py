"""EventBridge: what PutTargets and PutEvents refuse, and rules that call functions."""

import json
import re
from collections.abc import Callable, Mapping, Sequence
from functools import wraps
from typing import Any

from moto.awslambda.models import lambda_backends
from moto.core.utils import utcnow
from moto.events.models import events_backends
from moto.sns.models import sns_backends
from moto.sts.models import sts_backends

from local_aws import sessions
from local_aws.policies import Call, as_list, is_allowed
from local_aws.refusal import Refusal
from local_aws.services import invocations
from local_aws.services.roles import statements_of, trust_of


def checked_targets(original: Callable[..., Any]) -> Callable[..., Any]:
    """Return PutTargets so that it reads the constant inputs first.

    https://docs.aws.amazon.com/eventbridge/latest/APIReference/API_Target.html (Input)
    """

    @wraps(original)
    def put_targets(backend: Any, name: str, bus: str | None, targets: Sequence[Mapping[str, Any]]) -> Any:
        for target in targets:
            try:
                json.loads(target.get("Input") or "null")
            except ValueError as error:
                raise Refusal(
                    "ValidationException", f"JSON syntax error in input for target {target['Id']}."
                ) from error
        return original(backend, name, bus, targets)

    return put_targets


def checked_events(original: Callable[..., Any]) -> Callable[..., Any]:
    """Return PutEvents, which refuses events in the name of AWS.

    https://docs.aws.amazon.com/eventbridge/latest/APIReference/API_PutEventsRequestEntry.html
    """

    @wraps(original)
    def put_events(backend: Any, events: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
        return [
            {"ErrorCode": "NotAuthorizedForSourceException", "ErrorMessage": "Not authorized for the source."}
            if str(event.get("Source")).startswith("aws.")
            else original(backend, [event])[0]
            for event in events
        ]

    return put_events


def authorized(original: Callable[..., Any]) -> Callable[..., Any]:
    """Return PutEvents, in which a session of a role may send only what the policies of the role allow.

    Where one event of several is not allowed, none is taken: AWS does not say what becomes of the others.
    https://docs.aws.amazon.com/eventbridge/latest/userguide/eb-use-conditions.html
    """

    @wraps(original)
    def put_events(response: Any) -> Any:
        account, partition, region = response.current_account, response.partition, response.region
        session = sts_backends[account][partition].get_assumed_role_from_access_key(response.get_access_key())
        for entry in response._get_param("Entries") if session else ():
            bus = f"arn:{partition}:events:{region}:{account}:event-bus/{entry.get('EventBusName', 'default')}"
            said = {"events:source": entry["Source"], "events:detail-type": entry["DetailType"]}
            call = Call(
                action="events:PutEvents",
                resource=bus,
                context={**said, "aws:userid": session.user_id},
                region=region,
            )
            if not is_allowed(statements_of(session.role_arn), call):
                raise Refusal(
                    "AccessDeniedException",
                    f"User: {session.arn} is not authorized to perform: events:PutEvents on resource: {bus}",
                )
        return original(response)

    return put_events


def announce(request: Mapping[str, Any]) -> Mapping[str, Any]:
    """Let a service of AWS send an event to the default bus."""
    backend = events_backends[request["account"]][request["region"]]
    event = {
        "version": "0",
        "id": "17793124-05d4-b198-2fde-7ededc63b103",
        "detail-type": request["detail_type"],
        "source": request["source"],
        "account": request["account"],
        "time": f"{utcnow():%Y-%m-%dT%H:%M:%SZ}",
        "region": request["region"],
        "resources": request.get("resources", []),
        "detail": request["detail"],
    }
    for rule in list(backend.describe_event_bus("default").rules.values()):
        rule.send_to_targets(event)
    return {}


def with_functions(original: Callable[..., Any]) -> Callable[..., Any]:
    """Return what sends an event to the targets of a rule so that functions are called and topics get messages.

    What does not let the rule reach it gets no event: that goes to the target's dead-letter queue.
    https://docs.aws.amazon.com/eventbridge/latest/userguide/eb-rule-dlq.html
    """

    @wraps(original)
    def send_to_targets(rule: Any, original_event: Any, transform_input: bool = True) -> None:
        if not rule.event_pattern.matches_event(original_event):
            return
        targets = rule.targets
        own = [target for target in targets if target["Arn"].split(":")[2] in _SENDERS]
        rule.targets = [target for target in targets if target not in own]
        try:
            original(rule, original_event, transform_input)
        finally:
            rule.targets = targets
        for target in own if rule.state == "ENABLED" else ():
            event = {**original_event, "time": _text(original_event["time"])}
            if not _SENDERS[target["Arn"].split(":")[2]](rule, target, event):
                _keep(rule, target, event)

    return send_to_targets


def _text(time: Any) -> str:
    """Return an event's time as EventBridge writes it; moto has seconds since 1970."""
    return time if isinstance(time, str) else f"{utcnow():%Y-%m-%dT%H:%M:%SZ}"


def _call(rule: Any, target: Mapping[str, Any], event: Mapping[str, Any]) -> bool:
    arn = target["Arn"]
    function = lambda_backends[rule.account_id][arn.split(":")[3]].get_function(arn)
    asked = Call(
        action="lambda:InvokeFunction",
        resource=arn,
        context={"AWS:SourceArn": rule.arn},
        principal="events.amazonaws.com",
    )
    if not is_allowed(function.policy.statements, asked):
        return False
    if set(target) & {"InputPath", "InputTransformer"}:
        raise NotImplementedError(f"cannot change the event for the target {target['Id']}")
    given = json.loads(target["Input"]) if target.get("Input") else event
    invocations.handle(function, rule.region_name, given, ":".join(arn.split(":")[7:]))
    return True


def _publish(rule: Any, target: Mapping[str, Any], event: Mapping[str, Any]) -> bool:
    """Publish an event to a topic, in the name of the target's role, or of EventBridge without one."""
    arn, role = target["Arn"], target.get("RoleArn")
    _, _, _, region, account, _ = arn.split(":")
    topic = sns_backends[account][region].topics.get(arn)
    if topic is None or region != rule.region_name:
        return False
    service = "events.amazonaws.com"
    of_topic = as_list(json.loads(topic.policy)["Statement"])
    if role is None:
        allowed = is_allowed(of_topic, Call(action="sns:Publish", resource=arn, principal=service))
    else:
        # A topic of another account must let the role publish, too, and one with a key asks for that.
        if account != rule.account_id or topic.kms_master_key_id:
            raise NotImplementedError(f"cannot publish to {arn} with a role")
        allowed = is_allowed(trust_of(role), Call(action="sts:AssumeRole", resource="*", principal=service))
        allowed = allowed and is_allowed(statements_of(role), Call(action="sns:Publish", resource=arn))
    if allowed:
        topic.publish(_transformed(target, event))
    return allowed


def _transformed(target: Mapping[str, Any], event: Mapping[str, Any]) -> str:
    """Return what a target gets of an event: all of it, or an object that is made of its parts.

    A part that the event does not have is an empty text.
    https://docs.aws.amazon.com/eventbridge/latest/userguide/eb-transform-target-input.html
    """
    transformer = target.get("InputTransformer")
    if set(target) & {"Input", "InputPath"}:
        raise NotImplementedError(f"cannot change the event for the target {target['Id']}")
    if transformer is None:
        return json.dumps(event)

    def part(placeholder: re.Match[str]) -> str:
        value: Any = event
        for step in transformer["InputPathsMap"][placeholder[1]].removeprefix("$.").split("."):
            value = value.get(step, "") if isinstance(value, Mapping) else ""
        return json.dumps(value)

    text = re.sub(r"<([\w-]+)>", part, str(transformer["InputTemplate"]))
    try:
        return json.dumps(json.loads(text))
    except ValueError as error:
        raise NotImplementedError(f"cannot fill in texts for the target {target['Id']}") from error


def _keep(rule: Any, target: Mapping[str, Any], event: Mapping[str, Any]) -> None:
    queue = target.get("DeadLetterConfig", {}).get("Arn")
    if queue:
        client = sessions.client("sqs", invocations.INVOCATIONS.environment["AWS_ENDPOINT_URL"], rule.region_name)
        url = client.get_queue_url(QueueName=queue.rpartition(":")[2])["QueueUrl"]
        client.send_message(QueueUrl=url, MessageBody=json.dumps(event))


_SENDERS = {"lambda": _call, "sns": _publish}
