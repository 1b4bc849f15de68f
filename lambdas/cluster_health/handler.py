"""The entry point of the health function."""

import os
from datetime import UTC, datetime

from aws_lambda_powertools import Logger
from aws_lambda_powertools.utilities.typing import LambdaContext

from cluster_common import clients
from cluster_common.pages import without_interfaces
from cluster_contract.aliases import alias_of
from cluster_contract.health_settings import HealthFunctionSettings
from cluster_health.health import Health

logger = Logger()


@logger.inject_lambda_context(clear_state=True)
def handler(event: dict[str, object], context: LambdaContext) -> dict[str, object]:
    """Take in what nodes and AWS say of nodes, and repair those that are broken, as far as the policy says."""
    settings = HealthFunctionSettings.from_environment(os.environ)
    logger.append_keys(cluster=settings.cluster)
    aws = clients.Clients(ec2=lambda: without_interfaces(clients.ec2()))
    return Health(settings, aws, logger, datetime.now(UTC)).run(event, alias_of(context.invoked_function_arn))
