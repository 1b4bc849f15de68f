"""The answer to CloudFormation, which asks for the removal when the stack goes.

It is always SUCCESS: alarms that stay cost cents, and a message names them; a stack that stays costs more.
https://docs.aws.amazon.com/AWSCloudFormation/latest/UserGuide/crpg-ref-responses.html
"""

from collections.abc import Callable, Mapping, Sequence
from threading import Thread
from typing import Any

from aws_lambda_powertools import Logger

from cluster_common.custom_resources import ANSWER_ATTEMPT_SECONDS, ANSWER_ATTEMPTS, send_answer

_TELLING_SECONDS = 20
# What is left for the message and the answer, when the removal takes too long.
_LAST_SECONDS = _TELLING_SECONDS + ANSWER_ATTEMPTS * ANSWER_ATTEMPT_SECONDS + 10


def answer(
    event: Mapping[str, Any],
    *,
    remove: Callable[[], None],
    tell: Callable[[Sequence[str]], None],
    seconds: float,
    logger: Logger,
) -> None:
    """Remove what the function made if the resource is deleted, and answer CloudFormation in time.

    Args:
        event: CloudFormation's request.
        remove: Removes everything, or raises what says what was left.
        tell: Sends a message about what was left.
        seconds: How long the function may still run.
        logger: Where what was left is written.
    """
    left: list[str] = []
    if event["RequestType"] == "Delete":
        _within(seconds - _LAST_SECONDS, "the billing alarms", remove, left)
    if left:
        logger.error(f"left behind: {'; '.join(left)}")
        _within(_TELLING_SECONDS, "the message about them", lambda: tell(tuple(left)), left)
    send_answer(
        event,
        logger,
        succeeded=True,
        # Another id would have CloudFormation delete what the old one stands for.
        physical_id=event.get("PhysicalResourceId", "billing-alarms"),
        reason="; ".join(left),
    )


def _within(seconds: float, what: str, work: Callable[[], None], left: list[str]) -> None:
    """Do some work for so long, whatever it hangs on; add what became of it to what was left, unless it succeeded."""

    def do() -> None:
        try:
            work()
        except Exception as error:  # nothing may keep the answer back
            left.append(f"{what}: {type(error).__name__}: {error}")

    worker = Thread(target=do, daemon=True)
    worker.start()
    worker.join(max(seconds, 0))
    if worker.is_alive():
        left.append(f"{what}: it took too long")
