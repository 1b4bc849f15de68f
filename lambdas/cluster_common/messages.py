"""Messages to a topic: what SNS takes as their subject, and how texts of unknown writers are shown."""

import os
from typing import TYPE_CHECKING

from aws_lambda_powertools import Logger

from cluster_common.errors import AWS_ERRORS, error_text
from cluster_contract.codec import BACKUP_TOPIC_VARIABLE
from cluster_contract.events import EVENT_FIELD, Event
from cluster_contract.texts import printable

if TYPE_CHECKING:
    from mypy_boto3_sns.client import SNSClient

# It shares its records' keys with the handler's: both log for one service.
logger = Logger()

# https://docs.aws.amazon.com/sns/latest/api/API_Publish.html: ASCII, no line breaks, less than 100
# characters.
_SUBJECT_LENGTH = 99


def publish(sns: "SNSClient", topic_arn: str, title: str, text: str) -> bool:
    """Send a message to a topic, or to the backup topic where it refuses the message; log the subject as an event.

    Returns:
        Whether the topic itself took the message.

    Raises:
        ClientError: The topic refuses it, and there is no backup topic that takes it.
    """
    taken = True
    try:
        sns.publish(TopicArn=topic_arn, Subject=title, Message=text)
    except AWS_ERRORS as error:
        taken = False
        if not publish_to_backup(sns, title, text, f"{topic_arn} refused it: {error_text(error)}"):
            raise
    logger.info(title, extra={EVENT_FIELD: Event.MESSAGE})
    return taken


def publish_to_backup(sns: "SNSClient", title: str, text: str, reason: str) -> bool:
    """Send a message to the backup topic with the reason, and return whether there is one that took it."""
    backup = os.environ.get(BACKUP_TOPIC_VARIABLE)
    if not backup:
        return False
    try:
        sns.publish(
            TopicArn=backup, Subject=title, Message=f"{text}\n\nThe backup topic got this message, because {reason}"
        )
    except AWS_ERRORS as error:
        logger.warning(f"the backup topic {backup} refused a message: {error_text(error)}")
        return False
    logger.warning(f"the backup topic {backup} got a message, because {reason}")
    return True


def subject(text: str) -> str:
    """Turn text into a line that SNS takes as a subject: other characters become `?`, too much is cut."""
    line = printable(" ".join(text.split()), len(text) * 10)
    return line.encode("ascii", "replace").decode("ascii")[:_SUBJECT_LENGTH]


def one_line(text: str) -> str:
    """Turn what an operator or a program wrote into one line of at most 256 characters that hides nothing."""
    return printable(" ".join(text.split()), 256)
