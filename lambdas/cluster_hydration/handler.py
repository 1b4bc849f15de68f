"""The entry point of the hydration function."""

import os
from datetime import UTC, datetime

from aws_lambda_powertools import Logger
from aws_lambda_powertools.utilities.typing import LambdaContext

from cluster_common import clients
from cluster_common.actions import Action, parse_action
from cluster_common.pages import without_interfaces
from cluster_contract.hydration import HydrationFunctionSettings
from cluster_hydration.hydration import HydrationRun

logger = Logger()


@logger.inject_lambda_context(clear_state=True)
def handler(event: dict[str, object], _context: LambdaContext) -> dict[str, object]:
    """Do what is next for the cluster's data sets."""
    settings = HydrationFunctionSettings.from_environment(os.environ)
    logger.append_keys(cluster=settings.cluster)
    action = parse_action(event, tuple(Action))
    aws = clients.Clients(ec2=lambda: without_interfaces(clients.ec2()))
    return HydrationRun(settings, aws, logger, now=datetime.now(UTC)).run(action)
