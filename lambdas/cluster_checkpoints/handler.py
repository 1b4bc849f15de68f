"""The entry point of the checkpoint function."""

import os
from datetime import UTC, datetime

from aws_lambda_powertools import Logger
from aws_lambda_powertools.utilities.typing import LambdaContext

from cluster_checkpoints.checkpoints import CheckpointRun
from cluster_common import clients
from cluster_contract.checkpoints import CheckpointFunctionSettings

logger = Logger()


@logger.inject_lambda_context(clear_state=True)
def handler(_event: dict[str, object], _context: LambdaContext) -> dict[str, object]:
    """Look for a new checkpoint, and return what is known; nothing is changed."""
    settings = CheckpointFunctionSettings.from_environment(os.environ)
    logger.append_keys(cluster=settings.cluster)
    return CheckpointRun(settings, clients.Clients(), logger, now=datetime.now(UTC)).run()
