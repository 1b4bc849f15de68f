"""The entry point of the power function."""

import os
from datetime import UTC, datetime

from aws_lambda_powertools import Logger
from aws_lambda_powertools.utilities.typing import LambdaContext

from cluster_common import clients
from cluster_power.orders import parse_order
from cluster_power.power import Clients, Power
from cluster_power.settings import Settings

logger = Logger()


@logger.inject_lambda_context(clear_state=True)
def handler(
    event: dict[str, object],
    context: LambdaContext,  # noqa: ARG001 (Lambda passes it, and Powertools reads it)
) -> dict[str, object]:
    """Bring the cluster's node groups to the sizes they should have, or do what an operator orders."""
    settings = Settings.from_environment(os.environ)
    logger.append_keys(cluster=settings.cluster)
    order = parse_order(event, settings)
    aws = Clients(
        auto_scaling=clients.auto_scaling,
        auto_scaling_once=clients.auto_scaling_once,
        ec2=clients.ec2,
        sns=clients.sns,
        ssm=clients.ssm,
    )
    return Power(settings, aws, logger, now=datetime.now(UTC)).carry_out(order)
