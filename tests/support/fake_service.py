"""What the fakes of AWS services share: calls are checked, recorded and, where a test says so, refused."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import botocore.session
from botocore.exceptions import ClientError
from botocore.model import ServiceModel
from botocore.validate import ParamValidator

from policy_evaluator import Call

ACCOUNT = "111122223333"
REGION = "us-east-1"
STACK = f"arn:aws:cloudformation:{REGION}:{ACCOUNT}:stack/base-pod/1"
"""The id of the stack of clusters in memory."""


@dataclass(eq=False)
class _Fault:
    operation: str
    name: str | None
    error: ClientError
    after: int


class FakeService:
    """A service in memory. Parameters are checked against botocore's model of the real one."""

    def __init__(self, service: str) -> None:
        self.calls: list[Call] = []
        self.requests: list[tuple[str, dict[str, Any]]] = []
        self._service = service
        self._model = _model(service)
        self._faults: list[_Fault] = []
        self._interruptions: list[tuple[str, str, Callable[[], object]]] = []
        self.on_call: Callable[[str], object] = lambda _: None
        """Is called with each operation before it is answered; what it raises ends the caller."""

    def fail_next(
        self,
        operation: str,
        code: str,
        *,
        group: str | None = None,
        message: str = "no",
        after: int = 0,
        times: int = 1,
    ) -> None:
        """Answer the next calls of an operation, or those for one name or id, with an error, or later ones."""
        self._faults += [_Fault(operation, group, refusal(operation, code, message), after) for _ in range(times)]

    def mend(self) -> None:
        """Forget the errors that no call was answered with yet."""
        self._faults.clear()

    def before_next(self, operation: str, name: str, interruption: Callable[[], object]) -> None:
        """Let something happen right before the next call of an operation about one name or id."""
        self._interruptions.append((operation, name, interruption))

    @property
    def writes(self) -> list[str]:
        """The operations that changed something, in order."""
        return [call.action.split(":")[1] for call in self.calls if "Describe" not in call.action]

    def record(
        self,
        operation: str,
        parameters: dict[str, Any],
        *,
        names: Sequence[str] = (),
        arn: str = "*",
        tags: dict[str, str] | None = None,
        tag_keys: list[str] | None = None,
        context: dict[str, str | list[str]] | None = None,
    ) -> None:
        """Check and record a call, and refuse it where that was asked for.

        Args:
            operation: The operation.
            parameters: Its parameters.
            names: The names or ids that it is about.
            arn: The ARN that IAM sees.
            tags: The tags on what it acts on.
            tag_keys: The keys of the tags that it writes.
            context: More condition keys of the request.
        """
        # What happens may call the same operation, and have the next interruption happen there.
        while waiting := [one for one in self._interruptions if one[0] == operation and one[1] in names]:
            self._interruptions.remove(waiting[0])
            waiting[0][2]()
        self.on_call(operation)
        self.requests.append((operation, parameters))
        shape = self._model.operation_model(operation).input_shape
        assert shape is not None
        report = ParamValidator().validate(parameters, shape)
        assert not report.has_errors(), report.generate_report()
        keys: dict[str, str | list[str]] = {f"aws:ResourceTag/{key}": value for key, value in (tags or {}).items()}
        if tag_keys is not None:
            keys["aws:TagKeys"] = tag_keys
        call = Call(action=f"{self._service}:{operation}", resource=arn, context=keys | (context or {}))
        self.calls.append(call)
        for fault in self._faults:
            if fault.operation == operation and (fault.name is None or fault.name in names):
                if not fault.after:
                    self._faults.remove(fault)
                    raise fault.error
                fault.after -= 1
        # https://docs.aws.amazon.com/tag-editor/latest/userguide/best-practices-and-strats.html
        if any(key.lower().startswith("aws:") for key in tag_keys or ()):
            raise refusal(operation, "ValidationError", "Tag keys starting with 'aws:' are reserved for internal use")


@cache
def _model(service: str) -> ServiceModel:
    return botocore.session.get_session().get_service_model(service)


class FakePaginator:
    """The paginator of one operation."""

    def __init__(self, pages: Callable[..., Iterator[dict[str, Any]]]) -> None:
        self._pages = pages

    def paginate(self, **parameters: Any) -> Iterator[dict[str, Any]]:
        """Answer page by page."""
        return self._pages(**parameters)


def refusal(operation: str, code: str, message: str) -> ClientError:
    """Return the error that AWS answers with."""
    return ClientError({"Error": {"Code": code, "Message": message}}, operation)
