"""Systems Manager Automation: runbooks whose steps invoke Lambda functions; moto has none.

An execution has ended when StartAutomationExecution answers. Functions are invoked through the local AWS like any
client does it, so that a fault of Invoke strikes here too.
https://docs.aws.amazon.com/systems-manager/latest/userguide/automation-action-lamb.html
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any
from uuid import uuid4

from botocore.exceptions import BotoCoreError, ClientError
from moto.core.responses import ActionResult
from moto.core.utils import utcnow
from moto.iam.models import iam_backends

from local_aws import sessions
from local_aws.refusal import Refusal
from local_aws.services.automation_parameters import filled, parameters_of
from local_aws.services.invocations import INVOCATIONS

_ACTION = "aws:invokeLambdaFunction"
_STEP_SETTINGS = frozenset(
    {"action", "description", "inputs", "isCritical", "isEnd", "maxAttempts", "name", "onFailure", "timeoutSeconds"}
)
_NO_OUTPUT = "No output available yet because the step is not successfully executed"


@dataclass
class _Execution:
    """One execution of a runbook, in the words of GetAutomationExecution."""

    document: Any
    parameters: Mapping[str, Any]
    account: str
    region: str
    id: str = field(default_factory=lambda: str(uuid4()))
    started: datetime = field(default_factory=utcnow)
    steps: list[dict[str, Any]] = field(default_factory=list)
    failure: str | None = None
    ended: bool = False

    def run(self) -> None:
        """Run the steps in turn until one fails or is the end."""
        self._run_steps()
        self.ended = True

    def _run_steps(self) -> None:
        for step in self.document.content_json["mainSteps"]:
            self.steps.append(self._step(step))
            if self.steps[-1]["StepStatus"] == "Failed" and step.get("onFailure", "Abort") == "Abort":
                self.failure = self.steps[-1]["FailureMessage"]
            if self.failure or step.get("isEnd"):
                return

    def _step(self, step: Mapping[str, Any]) -> dict[str, Any]:
        inputs = filled(step["inputs"], self._known())
        # What is no text is shown as JSON.
        shown = {key: value if isinstance(value, str) else json.dumps(value) for key, value in inputs.items()}
        said = {
            "StepName": step["name"],
            "Action": step["action"],
            "StepExecutionId": str(uuid4()),
            "ExecutionStartTime": utcnow(),
            "Inputs": shown,
        }
        outputs: dict[str, list[str]] = {}
        failure = "it was never tried"
        for _ in range(int(step.get("maxAttempts", 1))):
            outputs, failure = self._invoke(inputs)
            if not failure:
                break
        said |= {"ExecutionEndTime": utcnow(), "StepStatus": "Failed" if failure else "Success", "Outputs": outputs}
        if failure:
            said["FailureMessage"] = (
                f"Step fails when it is Execute/Cancelling action. {failure}. Please refer to Automation Service "
                "Troubleshooting Guide for more diagnosis details."
            )
        return said

    def _invoke(self, inputs: Mapping[str, Any]) -> tuple[dict[str, list[str]], str]:
        payload = inputs.get("Payload", "{}")
        if "InputPayload" in inputs:
            payload = json.dumps(inputs["InputPayload"])
        client = sessions.client("lambda", INVOCATIONS.environment["AWS_ENDPOINT_URL"], self.region)
        try:
            answer = client.invoke(
                FunctionName=inputs["FunctionName"],
                InvocationType=inputs.get("InvocationType", "RequestResponse"),
                **({"Qualifier": inputs["Qualifier"]} if "Qualifier" in inputs else {}),
                Payload=payload.encode(),
            )
        except (BotoCoreError, ClientError) as error:
            return {}, str(error)
        outputs = {"StatusCode": [str(answer["StatusCode"])], "Payload": [answer["Payload"].read().decode()]}
        if "FunctionError" in answer:
            outputs["FunctionError"] = [answer["FunctionError"]]
            return outputs, f"FunctionError: {answer['FunctionError']}, Payload: {outputs['Payload'][0]}"
        return outputs, ""

    def _known(self) -> dict[str, Any]:
        outputs = {
            f"{step['StepName']}.{name}": values[0] for step in self.steps for name, values in step["Outputs"].items()
        }
        return {
            **self.parameters,
            **outputs,
            "automation:EXECUTION_ID": self.id,
            "global:ACCOUNT_ID": self.account,
            "global:DATE_TIME": f"{self.started:%Y-%m-%d_%H.%M.%S}",
            "global:REGION": self.region,
        }

    def described(self) -> dict[str, Any]:
        """Return the execution as GetAutomationExecution shows it."""
        known = self._known()
        outputs = self.document.content_json.get("outputs") or []
        return {
            "AutomationExecutionId": self.id,
            "DocumentName": self.document.name,
            "DocumentVersion": self.document.document_version,
            "ExecutionStartTime": self.started,
            **({"ExecutionEndTime": self.steps[-1]["ExecutionEndTime"]} if self.ended else {}),
            "AutomationExecutionStatus": "Failed" if self.failure else "Success" if self.ended else "InProgress",
            "StepExecutions": self.steps,
            "Parameters": {
                name: value if isinstance(value, list) else [str(value)] for name, value in self.parameters.items()
            },
            "Outputs": {name: [str(known.get(name, _NO_OUTPUT))] for name in outputs},
            "FailureMessage": self.failure,
            "Mode": "Auto",
            "ExecutedBy": f"arn:aws:iam::{self.account}:root",
        }


_executions: dict[str, _Execution] = {}


def start_automation_execution(response: Any) -> ActionResult:
    """Answer StartAutomationExecution."""
    document = _document(response)
    for step in document.content_json["mainSteps"]:
        others = sorted(set(step) - _STEP_SETTINGS)
        if step["action"] != _ACTION or others:
            raise NotImplementedError(f"a runbook's step of the action {step['action']} with {', '.join(others)}")
    _check_role(response, document.content_json.get("assumeRole"))
    parameters = parameters_of(document.content_json, response._get_param("Parameters") or {})
    execution = _Execution(document, parameters, response.current_account, response.region)
    _executions[execution.id] = execution
    execution.run()
    return ActionResult({"AutomationExecutionId": execution.id})


def _check_role(response: Any, arn: str | None) -> None:
    """Refuse a role that Automation cannot assume, as the service does.

    https://docs.aws.amazon.com/systems-manager/latest/userguide/automation-troubleshooting.html
    """
    if arn is None:
        return
    roles = iam_backends[response.current_account][response.partition].roles.values()
    trusted = [json.dumps(role.assume_role_policy_document) for role in roles if role.arn == arn]
    if not trusted or "ssm.amazonaws.com" not in trusted[0]:
        raise Refusal(
            "InvalidAutomationExecutionParametersException", "The defined assume role is unable to be assumed."
        )


def get_automation_execution(response: Any) -> ActionResult:
    """Answer GetAutomationExecution."""
    execution_id = response._get_param("AutomationExecutionId")
    if execution_id not in _executions:
        raise Refusal(
            "AutomationExecutionNotFoundException", f"Automation execution with id {execution_id} does not exist."
        )
    return ActionResult({"AutomationExecution": _executions[execution_id].described()})


def _document(response: Any) -> Any:
    name, version = response._get_param("DocumentName"), response._get_param("DocumentVersion")
    documents = response.ssm_backend._documents.get(name)
    if documents is None or documents.get_default_version().document_type != "Automation":
        raise Refusal("AutomationDefinitionNotFoundException", f"Automation definition {name} not found.")
    wanted = None if version in {None, "$DEFAULT"} else version
    document = documents.find(wanted, None, strict=False)
    if document is None:
        raise Refusal(
            "AutomationDefinitionVersionNotFoundException", f"Automation definition {name}:{version} not found."
        )
    return document
