"""The parameters of Systems Manager in memory."""

from typing import Any

from fake_service import ACCOUNT, REGION, FakeService, refusal


class FakeSsm(FakeService):
    """The client of Systems Manager, as far as parameters go."""

    def __init__(self) -> None:
        super().__init__("ssm")
        self.parameters: dict[str, str] = {}

    def get_parameter(self, **parameters: Any) -> dict[str, Any]:
        """Answer GetParameter."""
        name = parameters["Name"]
        self.record("GetParameter", parameters, names=[name], arn=_arn(name))
        if name not in self.parameters:
            raise refusal("GetParameter", "ParameterNotFound", "")
        return {"Parameter": {"Name": name, "Type": "String", "Value": self.parameters[name]}}

    def put_parameter(self, **parameters: Any) -> dict[str, Any]:
        """Answer PutParameter of a parameter that is there."""
        name = parameters["Name"]
        self.record("PutParameter", parameters, names=[name], arn=_arn(name))
        assert name in self.parameters
        assert parameters["Overwrite"]
        # https://docs.aws.amazon.com/systems-manager/latest/userguide/parameter-store-advanced-parameters.html
        assert len(parameters["Value"]) <= 4096
        self.parameters[name] = parameters["Value"]
        return {"Version": 2, "Tier": "Standard"}


def _arn(name: str) -> str:
    return f"arn:aws:ssm:{REGION}:{ACCOUNT}:parameter/{name}"
