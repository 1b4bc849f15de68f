"""The entry point of the cost function."""

import os
from datetime import UTC, datetime

from aws_lambda_powertools import Logger
from aws_lambda_powertools.utilities.typing import LambdaContext

from cluster_common import clients
from cluster_contract.costs import CostFunctionSettings
from cluster_costs.costs import CostRun

logger = Logger()


@logger.inject_lambda_context(clear_state=True)
def handler(_event: dict[str, object], _context: LambdaContext) -> dict[str, object]:
    """Send the report of the last week, unless it was sent."""
    settings = CostFunctionSettings.from_environment(os.environ)
    logger.append_keys(cluster=settings.cluster)
    return CostRun(settings, clients.Clients(), logger, now=datetime.now(UTC)).run()
