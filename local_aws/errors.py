"""Errors as a service spells them: EC2's XML, the query protocol's, JSON with its headers."""

from dataclasses import dataclass

from moto.core.model import OperationModel
from moto.core.request import determine_request_protocol
from moto.core.serialize import get_serializer_class
from moto.core.utils import get_service_model

from local_aws.refusal import Refusal


@dataclass(frozen=True)
class ErrorAnswer:
    """An HTTP answer that says an error."""

    status: int
    headers: list[tuple[str, str]]
    body: bytes


def answer(service: str, content_type: str, code: str, message: str, status: int | None = None) -> ErrorAnswer:
    """Return the answer with which a service says an error.

    Args:
        service: The service's name in boto3.
        content_type: The request's content type, which tells the protocol where a service has several.
        code: The error's code.
        message: Its message.
        status: The HTTP status. Default: - what the service's model says of this error, or else 400

    Raises:
        Exception: botocore's or moto's, if there is no model of the service.
    """
    model = get_service_model(service)
    protocol = determine_request_protocol(model, content_type)
    serializer = get_serializer_class(model.service_name, protocol)(OperationModel({}, model))
    serialized = serializer.serialize(Refusal(code, message))
    body = serialized["body"]
    return ErrorAnswer(
        status or int(serialized["status_code"]),
        [(name, str(value)) for name, value in serialized["headers"].items()],
        body if isinstance(body, bytes) else str(body).encode(),
    )
