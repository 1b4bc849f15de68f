"""Messages to a topic: what SNS takes as their subject, and how texts of unknown writers are shown."""

from typing import TYPE_CHECKING

from aws_lambda_powertools import Logger

from cluster_contract.events import EVENT_FIELD, Event
from cluster_contract.texts import printable

if TYPE_CHECKING:
    from mypy_boto3_sns.client import SNSClient

# It shares its records' keys with the handler's: both log for one service.
logger = Logger()

# https://docs.aws.amazon.com/sns/latest/api/API_Publish.html: ASCII, no line breaks, less than 100
# characters.
_SUBJECT_LENGTH = 99


def publish(sns: "SNSClient", topic_arn: str, title: str, text: str) -> None:
    """Send a message to a topic, and log its subject as an event."""
    sns.publish(TopicArn=topic_arn, Subject=title, Message=text)
    logger.info(title, extra={EVENT_FIELD: Event.MESSAGE})


def subject(text: str) -> str:
    """Turn text into a line that SNS takes as a subject: other characters become `?`, too much is cut."""
    line = printable(" ".join(text.split()), len(text) * 10)
    return line.encode("ascii", "replace").decode("ascii")[:_SUBJECT_LENGTH]


def one_line(text: str) -> str:
    """Turn what an operator or a program wrote into one line of at most 256 characters that hides nothing."""
    return printable(" ".join(text.split()), 256)
