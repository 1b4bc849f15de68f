"""The entry point of the idle function."""

import os
from datetime import UTC, datetime

from aws_lambda_powertools import Logger
from aws_lambda_powertools.utilities.typing import LambdaContext

from cluster_common import clients
from cluster_common.actions import parse_action
from cluster_common.pages import without_interfaces
from cluster_contract.idle import IdleFunctionSettings
from cluster_idle.idle import Idle

logger = Logger()


@logger.inject_lambda_context(clear_state=True)
def handler(
    event: dict[str, object],
    context: LambdaContext,  # noqa: ARG001 (Lambda passes it, and Powertools reads it)
) -> dict[str, object]:
    """Look at the cluster's nodes, warn of those that are idle, and have those stopped that stayed so."""
    settings = IdleFunctionSettings.from_environment(os.environ)
    logger.append_keys(cluster=settings.cluster)
    action = parse_action(event)
    aws = clients.Clients(ec2=lambda: without_interfaces(clients.ec2()))
    return Idle(settings, aws, logger, clock=lambda: datetime.now(UTC)).run(action)
