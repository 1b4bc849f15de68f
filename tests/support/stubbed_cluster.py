"""A deployed cluster whose AWS answers what a test says; botocore checks requests and answers."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

import boto3
from botocore.stub import Stubber

from cdk_training_cluster_cli.core.target import Target
from cdk_training_cluster_cli.observe.deployed import Deployed
from cluster_contract.description import ClusterDescription, FunctionDescription

NOW = datetime(2026, 11, 22, 12, tzinfo=UTC)
REGION = "eu-west-1"
_ARN = f"arn:aws:lambda:{REGION}:111122223333:function:pod"
DESCRIPTION = ClusterDescription(
    functions={
        kind: FunctionDescription(invoke=f"{_ARN}-{kind}", log_group=f"/pod/{kind}")
        for kind in ("power", "idle", "spend", "billing_alarms")
    },
    alert_topic="arn:topic",
    state_table="table",
    resume_document="document",
    security_group="sg-0123456789abcdef0",
)


@dataclass(frozen=True, kw_only=True)
class Stubbed(Deployed):
    """The cluster; what its functions answer is given by their kinds."""

    clients: Mapping[str, Any] = field(default_factory=dict)
    answers: Mapping[str, Any] = field(default_factory=dict)

    def client(self, service: str, region: str | None = None) -> Any:
        return self.clients[f"{service} {region or REGION}"]

    def ask(self, kind: str, event: Mapping[str, object] | None = None) -> Mapping[str, Any] | None:  # noqa: ARG002
        answer = self.answers.get(kind)
        if isinstance(answer, Exception):
            raise answer
        return answer


_SESSION = boto3.Session(aws_access_key_id="a", aws_secret_access_key="b")  # noqa: S106 - nothing is sent
Reply = tuple[str, Mapping[str, Any], Any]
"""An operation, its parameters, and what is answered: the code of an error, or an answer."""


@contextmanager
def stubbed(
    replies: Mapping[str, Sequence[Reply]], *, kinds: Sequence[str] = ("power", "billing_alarms"), **answers: Any
) -> Iterator[Stubbed]:
    """Return a cluster whose services, `ec2` or `ec2 us-east-1`, get these requests in this order, and no other.

    Args:
        replies: The requests with their answers, by service and region.
        kinds: The functions that it has.
        **answers: What they answer.
    """
    clients: dict[str, Any] = {}
    with ExitStack() as stack:
        for name, of_service in replies.items():
            service, _, region = name.partition(" ")
            client: Any = _SESSION.client(service, region_name=region or REGION)  # type: ignore[call-overload]
            stub = stack.enter_context(Stubber(client))
            for operation, parameters, answer in of_service:
                method = client.meta.method_to_api_mapping
                (python,) = [each for each, api in method.items() if api == operation]
                if isinstance(answer, str):
                    stub.add_client_error(python, answer, "no", expected_params=parameters)
                else:
                    stub.add_response(python, answer, parameters)
            clients[f"{service} {region or REGION}"] = client
            stack.callback(stub.assert_no_pending_responses)
        target = Target(name="pod", region=REGION, file=None, session=boto3.Session(region_name=REGION))
        functions = {kind: FunctionDescription(invoke=f"{_ARN}-{kind}", log_group=f"/pod/{kind}") for kind in kinds}
        description = ClusterDescription(
            functions=functions,
            alert_topic="arn:topic",
            state_table="table",
            resume_document="document",
            security_group=DESCRIPTION.security_group,
            runs_table="runs" if "dynamodb" in replies else "",
        )
        yield Stubbed(target=target, description=description, now=NOW, clients=clients, answers=answers)
