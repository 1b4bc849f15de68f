"""The entry point of the reservation function, which CloudFormation asks for reservations."""

import os
from datetime import UTC, datetime
from typing import Any

from aws_lambda_powertools import Logger
from aws_lambda_powertools.utilities.typing import LambdaContext

from cluster_common import clients
from cluster_common.custom_resources import send_answer
from cluster_contract.reservations import ReservationFunctionSettings
from cluster_reservations.api import ReservationApi
from cluster_reservations.keeper import Keeper
from cluster_reservations.refusals import RefusedError
from cluster_reservations.requests import Request

logger = Logger()


class UnansweredError(Exception):
    """Say that CloudFormation did not take the answer; Lambda delivers the request again, which changes nothing."""


@logger.inject_lambda_context(clear_state=True)
def handler(event: dict[str, Any], context: LambdaContext) -> None:
    """Make, change or cancel a reservation, and answer CloudFormation.

    What is not certain, such as a request to EC2 that got no answer, is not answered: Lambda delivers it again.
    """
    settings = ReservationFunctionSettings.from_environment(os.environ)
    request = Request.of(event)
    logger.append_keys(cluster=settings.cluster, node_group=request.terms.node_group, request=request.id)
    api = ReservationApi(
        request, clients.Clients(), logger, remaining=lambda: context.get_remaining_time_in_millis() / 1000
    )
    keeper = Keeper(request, api, logger, clock=lambda: datetime.now(UTC))
    try:
        physical_id, reason = keeper.carry_out(), ""
    except RefusedError as refused:
        physical_id, reason = keeper.named, str(refused)
    if reason:
        logger.error(reason)
    if not send_answer(event, logger, succeeded=not reason, physical_id=physical_id, reason=reason):
        raise UnansweredError(f"CloudFormation did not take the answer to request {request.id}")
