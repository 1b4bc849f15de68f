"""The parameters of Systems Manager in memory."""

from collections.abc import Iterator
from typing import Any

from fake_service import ACCOUNT, REGION, FakePaginator, FakeService, refusal


class FakeSsm(FakeService):
    """The client of Systems Manager, as far as parameters go.

    Attributes:
        versions: The values of each parameter, oldest first.
    """

    def __init__(self) -> None:
        super().__init__("ssm")
        self.versions: dict[str, list[str]] = {}

    def value(self, name: str) -> str:
        """Return what a parameter says now."""
        return self.versions[name][-1]

    def get_parameter(self, **parameters: Any) -> dict[str, Any]:
        """Answer GetParameter."""
        versions = self._asked("GetParameter", parameters)
        name = parameters["Name"]
        return {"Parameter": {"Name": name, "Type": "String", "Value": versions[-1], "Version": len(versions)}}

    def put_parameter(self, **parameters: Any) -> dict[str, Any]:
        """Answer PutParameter, of a parameter that is there or of a new one."""
        name = parameters["Name"]
        self.record("PutParameter", parameters, names=[name], arn=_arn(name))
        assert parameters["Overwrite"]
        assert parameters["Type"] == "String"
        # https://docs.aws.amazon.com/systems-manager/latest/userguide/parameter-store-advanced-parameters.html
        assert len(parameters["Value"]) <= 4096
        self.versions.setdefault(name, []).append(parameters["Value"])
        return {"Version": len(self.versions[name]), "Tier": "Standard"}

    def get_paginator(self, operation: str) -> FakePaginator:
        """Return the paginator of an operation."""
        return FakePaginator({"get_parameter_history": self._get_parameter_history}[operation])

    def _get_parameter_history(self, **parameters: Any) -> Iterator[dict[str, Any]]:
        """Answer GetParameterHistory, two versions a page."""
        versions = self._asked("GetParameterHistory", parameters)
        name, history = parameters["Name"], list(enumerate(versions, start=1))
        for first in range(0, len(history), 2):
            page = history[first : first + 2]
            yield {"Parameters": [{"Name": name, "Value": value, "Version": number} for number, value in page]}

    def _asked(self, operation: str, parameters: dict[str, Any]) -> list[str]:
        name = parameters["Name"]
        self.record(operation, parameters, names=[name], arn=_arn(name))
        if name not in self.versions:
            raise refusal(operation, "ParameterNotFound", "")
        return self.versions[name]


def _arn(name: str) -> str:
    return f"arn:aws:ssm:{REGION}:{ACCOUNT}:parameter/{name}"
