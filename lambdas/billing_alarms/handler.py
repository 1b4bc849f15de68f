"""The entry point of the function that keeps the billing alarms."""

import os
from datetime import UTC, datetime

from aws_lambda_powertools import Logger
from aws_lambda_powertools.utilities.typing import LambdaContext

from billing_alarms.billing import Billing, Clients, parse_request
from billing_alarms.removal import answer
from billing_alarms.watched_budget import WatchedBudget
from cluster_common import clients
from cluster_contract.billing import BILLING_REGION

logger = Logger()


@logger.inject_lambda_context(clear_state=True)
def handler(event: dict[str, object], context: LambdaContext) -> dict[str, object] | None:
    """Compare the alarms with the budget and repair them, or remove them with the stack."""
    if "ResponseURL" in event:
        answer(
            event,
            remove=lambda: _billing(context).remove(),
            tell=lambda left: _billing(context).tell_left_behind(left),
            seconds=context.get_remaining_time_in_millis() / 1000,
            logger=logger,
        )
        return None
    return _billing(context).run(parse_request(event))


def _billing(context: LambdaContext) -> Billing:
    settings = WatchedBudget.from_environment(os.environ, context.invoked_function_arn)
    logger.append_keys(cluster=settings.cluster)
    aws = Clients(
        cloudwatch=lambda: clients.cloudwatch(BILLING_REGION),
        sns=lambda: clients.sns(BILLING_REGION),
        home_sns=clients.sns,
        functions=clients.lambda_,
    )
    return Billing(settings, aws, logger, now=datetime.now(UTC))
