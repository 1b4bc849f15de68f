"""EventBridge: what its rules make of an event, and what PutTargets refuses.

Nothing is invoked here: a rehearsal is told the targets and their input, and runs the functions' code itself.
https://docs.aws.amazon.com/eventbridge/latest/userguide/eb-event-patterns.html
"""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from functools import wraps
from typing import Any
from uuid import uuid4

from moto.awslambda.models import lambda_backends
from moto.core.utils import unix_time, utcnow
from moto.events.models import events_backends
from moto.events.utils import EventTemplateParser

from local_aws.refusal import Refusal


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


def deliver(request: Mapping[str, Any]) -> Mapping[str, Any]:
    """Tell which targets the rules of the default bus invoke for an event, and which they may not invoke.

    Args:
        request: The account, the region, and the event with at least its source, detail-type and detail.
    """
    account, region = str(request["account"]), str(request["region"])
    given = request["event"]
    event = {
        "version": "0",
        "id": str(uuid4()),
        "account": account,
        "region": region,
        "time": f"{utcnow():%Y-%m-%dT%H:%M:%SZ}",
        "resources": [],
        **given,
        **{name: given[name] for name in ("source", "detail-type", "detail")},
    }
    invocations, denied = [], []
    for rule, target in _matched(events_backends[account][region], event):
        named = {"rule": rule.name, "id": target["Id"], "target": target["Arn"]}
        if ":lambda:" in target["Arn"] and not _may_invoke(rule, target["Arn"]):
            denied.append(named)
        else:
            invocations.append({**named, "input": _input(target, event)})
    return {"invocations": invocations, "denied": denied}


def _matched(backend: Any, event: Mapping[str, Any]) -> Iterator[tuple[Any, Mapping[str, Any]]]:
    for rule in list(backend.event_buses["default"].rules.values()):
        # A rule without a pattern runs on its schedule alone.
        if rule.state == "DISABLED" or not rule.event_pattern.get_pattern():
            continue
        if rule.event_pattern.matches_event(event):
            yield from ((rule, target) for target in rule.targets)


def _input(target: Mapping[str, Any], event: Mapping[str, Any]) -> Any:
    """Return what a target is given: its constant, its transformed event, or the event itself."""
    if target.get("Input"):
        return json.loads(target["Input"])
    if target.get("InputPath"):
        raise ValueError("the local AWS does not carry out InputPath of a target of an EventBridge rule")
    transformer = target.get("InputTransformer")
    if transformer:
        return EventTemplateParser.parse(
            transformer["InputTemplate"],
            transformer.get("InputPathsMap", {}),
            {**event, "ingestion-time": unix_time()},
        )
    return event


def _may_invoke(rule: Any, function_arn: str) -> bool:
    """Tell whether a function's resource policy lets EventBridge invoke it for a rule.

    https://docs.aws.amazon.com/eventbridge/latest/userguide/eb-use-resource-based.html#eb-lambda-permissions
    """
    _, _, _, region, account, _, name, *_ = function_arn.split(":")
    functions = {function.function_name: function for function in lambda_backends[account][region].list_functions()}
    statements = functions[name].policy.statements if name in functions else []
    return any(_allows(statement, rule) for statement in statements)


def _allows(statement: Mapping[str, Any], rule: Any) -> bool:
    condition = statement.get("Condition") or {}
    source = (condition.get("ArnLike") or {}).get("AWS:SourceArn", "*")
    account = (condition.get("StringEquals") or {}).get("AWS:SourceAccount", rule.account_id)
    return (
        statement["Effect"] == "Allow"
        and statement["Principal"] in ({"Service": "events.amazonaws.com"}, "*")
        and statement["Action"] in {"lambda:InvokeFunction", "lambda:*", "*"}
        and fnmatchcase(rule.arn, source)
        and account == rule.account_id
    )
