"""The entry point of the spend function."""

import os
from datetime import UTC, datetime

from aws_lambda_powertools import Logger
from aws_lambda_powertools.utilities.typing import LambdaContext

from cluster_common import clients
from cluster_common.actions import parse_action
from cluster_common.pages import without_interfaces
from cluster_contract.spend import SpendFunctionSettings
from cluster_spend.spend import SpendRun

logger = Logger()

# arn:aws:lambda:us-east-1:111122223333:function:name
_ACCOUNT = 4


@logger.inject_lambda_context(clear_state=True)
def handler(event: dict[str, object], context: LambdaContext) -> dict[str, object]:
    """Count what the cluster costs and, where that exceeds its budget, do what the budget says."""
    settings = SpendFunctionSettings.from_environment(os.environ)
    logger.append_keys(cluster=settings.cluster)
    action = parse_action(event)
    aws = clients.Clients(ec2=lambda: without_interfaces(clients.ec2()))
    account = context.invoked_function_arn.split(":")[_ACCOUNT]
    return SpendRun(settings, aws, logger, account=account, now=datetime.now(UTC)).run(action)
