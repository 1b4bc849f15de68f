"""Custom resources: a function is invoked with a signed address, and has to answer there.

https://docs.aws.amazon.com/AWSCloudFormation/latest/TemplateReference/crpg-ref.html
"""

import json
from collections.abc import Callable, Iterable, Mapping
from threading import Lock
from typing import Any
from urllib.parse import parse_qs
from uuid import uuid4

from local_aws.cloudformation.failures import CannotChangeError, HandlerError
from local_aws.cloudformation.resources.base import Attributes, Call, Handler, Properties

PATH = "/local-aws/custom-resource-answer"
"""Where functions answer; on AWS it is a bucket of CloudFormation's."""


class Answers:
    """What functions answered, by the signature of the address that they were given."""

    def __init__(self) -> None:
        self._taken: dict[str, Any] = {}
        self._lock = Lock()

    def expect(self) -> str:
        """Return the signature of a new address."""
        signature = uuid4().hex
        with self._lock:
            self._taken[signature] = None
        return signature

    def take(self, signature: str) -> Any:
        """Return what was answered, if anything; the address is of no more use."""
        with self._lock:
            return self._taken.pop(signature)

    def __call__(self, environ: Mapping[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
        """Take an answer, as S3 does: signed for this address, without a content type."""
        signature = parse_qs(environ.get("QUERY_STRING", "")).get("X-Amz-Signature", [""])[0]
        with self._lock:
            is_right = signature in self._taken and not environ.get("CONTENT_TYPE")
            if is_right:
                length = int(environ.get("CONTENT_LENGTH") or 0)
                self._taken[signature] = json.loads(environ["wsgi.input"].read(length))
        start_response("200 OK" if is_right else "403 Forbidden", [("Content-Type", "application/xml")])
        return [b"" if is_right else b"<Error><Code>SignatureDoesNotMatch</Code></Error>"]


ANSWERS = Answers()


class CustomResource(Handler):
    """Carries out https://docs.aws.amazon.com/AWSCloudFormation/latest/TemplateReference/aws-resource-cloudformation-customresource.html."""

    type = "AWS::CloudFormation::CustomResource"
    supported = frozenset({"ServiceTimeout", "ServiceToken"})
    may_answer_another_id = takes_any_property = True

    def create(self, call: Call, properties: Properties) -> Attributes:
        # Where no id is answered, it has one of CloudFormation's, and is deleted by it:
        # https://github.com/aws-cloudformation/cloudformation-coverage-roadmap/issues/1814
        call.made(call.physical_name())
        answer = self._ask(call, "Create", properties)
        return dict(answer.get("Data") or {})

    def update(self, call: Call, properties: Properties, before: Properties) -> Attributes:
        if properties["ServiceToken"] != before["ServiceToken"]:
            raise CannotChangeError("Modifying service token is not allowed.")
        answer = self._ask(call, "Update", properties, OldResourceProperties=_as_texts(before))
        return dict(answer.get("Data") or {})

    def delete(self, call: Call) -> None:
        self._ask(call, "Delete", call.properties)

    def _ask(self, call: Call, kind: str, properties: Properties, **more: object) -> Mapping[str, Any]:
        functions, signature, request = call.client("lambda"), ANSWERS.expect(), str(uuid4())
        event = {
            "RequestType": kind,
            "ResponseURL": f"{functions.meta.endpoint_url}{PATH}?X-Amz-Signature={signature}",
            "StackId": call.stack_id,
            "RequestId": request,
            "ResourceType": call.definition["Type"],
            "LogicalResourceId": call.logical_id,
            "ServiceToken": properties["ServiceToken"],
            "ResourceProperties": _as_texts(properties),
            **({} if kind == "Create" else {"PhysicalResourceId": call.physical_id}),
            **more,
        }
        try:
            functions.invoke(
                FunctionName=properties["ServiceToken"], InvocationType="Event", Payload=json.dumps(event).encode()
            )
        finally:
            # An invocation has ended when it is answered here: who has not answered by then never does.
            answer = ANSWERS.take(signature)
        if answer is None:
            raise HandlerError(
                "CloudFormation did not receive a response from your custom resource. Please check your logs for "
                f"requestId [{request}]."
            )
        has_succeeded = answer["Status"] == "SUCCESS"
        if answer.get("PhysicalResourceId") and (kind == "Create" or (kind == "Update" and has_succeeded)):
            call.made(answer["PhysicalResourceId"])
        if not has_succeeded:
            reason = answer.get("Reason", "")
            raise HandlerError(
                f"Received response status [FAILED] from custom resource. Message returned: {reason} (RequestId: "
                f"{request})"
            )
        for name in ("StackId", "RequestId", "LogicalResourceId"):
            if answer.get(name) != event[name]:
                raise HandlerError(f"Invalid response: {name} must be {event[name]}, got {answer.get(name)}")
        return dict(answer)


def _as_texts(value: Any) -> Any:
    """Return properties as a function gets them: all numbers and flags are texts.

    https://docs.aws.amazon.com/AWSCloudFormation/latest/TemplateReference/crpg-ref-requests.html
    """
    if isinstance(value, Mapping):
        return {key: _as_texts(each) for key, each in value.items()}
    if isinstance(value, list):
        return [_as_texts(each) for each in value]
    return str(value).lower() if isinstance(value, bool) else str(value)


HANDLERS: tuple[Handler, ...] = (CustomResource(),)
