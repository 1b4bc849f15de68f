"""The entry point of the power function."""

import os
from dataclasses import replace
from datetime import UTC, datetime

from aws_lambda_powertools import Logger
from aws_lambda_powertools.utilities.typing import LambdaContext

from cluster_common import clients
from cluster_common.messages import one_line
from cluster_contract.power import PowerFunctionSettings
from cluster_power.callers import Caller, name_starter
from cluster_power.commands import parse_command
from cluster_power.power import Power

logger = Logger()


@logger.inject_lambda_context(clear_state=True)
def handler(
    event: dict[str, object],
    context: LambdaContext,
) -> dict[str, object]:
    """Bring the cluster's node groups to the sizes they should have, or do what a command says."""
    settings = PowerFunctionSettings.from_environment(os.environ)
    logger.append_keys(cluster=settings.cluster)
    caller = Caller.of(context.invoked_function_arn, context.aws_request_id)
    command = parse_command(event, settings, caller)
    if command.automation_execution_id:
        command = replace(command, by=one_line(name_starter(clients.ssm(), command.automation_execution_id, logger)))
    return Power(settings, clients.Clients(), logger, now=datetime.now(UTC)).apply(command)
