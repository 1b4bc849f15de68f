"""Who invokes the function, and which commands they may send."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

from aws_lambda_powertools import Logger

from cluster_common.errors import AWS_ERRORS, InvalidEventError, error_text
from cluster_contract.aliases import Alias, alias_of
from cluster_contract.state import Sender

if TYPE_CHECKING:
    from mypy_boto3_ssm.client import SSMClient


class Action(StrEnum):
    """What an event asks for."""

    TICK = "tick"
    """Bring every group to the size it should have, report, and measure."""

    START = "start"
    """Give groups the file's count, whatever their size is now; in a Capacity Block, when it starts."""

    STOP = "stop"
    """Give groups the size 0, until a start."""

    LIMIT = "limit"
    """Let groups keep the nodes that they have and get no more, until a start."""

    TERMINATE = "terminate"
    """Terminate single nodes of one group, and make it smaller by as many, until a start."""

    STATUS = "status"
    """Say how things are, and change nothing."""


_ALLOWED: Mapping[Alias | None, tuple[Action, ...]] = {
    None: (Action.TICK, Action.STATUS),
    Alias.OPERATE: (Action.START, Action.STOP, Action.LIMIT, Action.TERMINATE, Action.STATUS),
    Alias.START: (Action.START,),
    Alias.IDLE: (Action.STOP, Action.TERMINATE),
    Alias.BUDGET: (Action.STOP, Action.LIMIT, Action.STATUS),
}


_FUNCTIONS: Mapping[Alias | None, Sender] = {Alias.IDLE: Sender.IDLE, Alias.BUDGET: Sender.BUDGET}


@dataclass(frozen=True, kw_only=True)
class Caller:
    """Who invokes the function, as far as Lambda says.

    Attributes:
        alias: The alias that it is invoked through. None: none, as its schedule does.
        request_id: The request, by which CloudTrail's data events for Lambda name the caller.
    """

    alias: Alias | None
    request_id: str

    @classmethod
    def of(cls, function_arn: str, request_id: str) -> "Caller":
        """Read the ARN that the function is invoked by.

        Raises:
            InvalidEventError: It is invoked through an alias that it does not know.
        """
        name = alias_of(function_arn)
        try:
            return cls(alias=Alias(name) if name else None, request_id=request_id)
        except ValueError:
            raise InvalidEventError(
                f"the function takes commands through its aliases {', '.join(Alias)}, got {name!r}"
            ) from None

    @property
    def by(self) -> str:
        """Who sends the command, as messages say."""
        if self.alias is Alias.OPERATE:
            return f"an operator in request {self.request_id}"
        return _FUNCTIONS.get(self.alias, Sender.POWER)

    def check(self, action: Action) -> None:
        """Refuse what this caller may not do.

        Raises:
            InvalidEventError: It is.
        """
        allowed = _ALLOWED[self.alias]
        if action in allowed:
            return
        through = f"the alias {self.alias}" if self.alias else "no alias"
        others = ", ".join(alias for alias, actions in _ALLOWED.items() if alias and action in actions)
        mend = f"; invoke the alias {others} for that" if others else ""
        raise InvalidEventError(f"through {through} it takes {', '.join(allowed)}, got {action}{mend}")


def name_starter(ssm: "SSMClient", execution_id: str, logger: Logger) -> str:
    """Say who started a runbook, as Systems Manager knows it; where it does not answer, which execution that is.

    A runbook that sends the command has not ended: whoever names another has not started it. The name of its document
    shows an operator whether it is one that starts node groups.

    Source: https://docs.aws.amazon.com/systems-manager/latest/APIReference/API_AutomationExecution.html
    """
    execution = f"automation {execution_id}"
    try:
        found = ssm.get_automation_execution(AutomationExecutionId=execution_id)["AutomationExecution"]
    except AWS_ERRORS as error:
        # Nodes are not kept waiting for a name.
        logger.warning(f"could not read who started the {execution} ({error_text(error)})")
        return execution
    if found.get("AutomationExecutionStatus", "InProgress") != "InProgress":
        return f"{execution}, which has ended"
    if found.get("DocumentName"):
        execution = f"{execution} of the runbook {found['DocumentName']}"
    return f"{found['ExecutedBy']} through {execution}" if found.get("ExecutedBy") else execution
