"""What sentences about settings call what their reader writes: in Python, or in a cluster file."""

from enum import Enum

from constructs import IConstruct


class Words:
    """The words of the library's own callers.

    Attributes:
        image: An image that the reader gives.
        image_setting: The setting that names one.
        without_image: How to leave it to AWS.
        own_image: How to give one.
        idle: The settings of a group's idle nodes.
        idle_off: Those of nodes that are never stopped.
        set_idle_off: How to give a group these.
        no_schedule: The schedule of a group that has none though its cluster has one.
        vpc_range: The setting that names the IPv4 range of a VPC that is made.
    """

    image = "a machine_image"
    image_setting = "machine_image"
    without_image = "leave machine_image out"
    own_image = "your own machine_image"
    idle = "an idle_policy"
    idle_off = "IdlePolicy.off()"
    set_idle_off = "idle_policy=IdlePolicy.off()"
    no_schedule = "Schedule([])"
    vpc_range = "cidr"

    def call(self, call: str) -> str:
        """Return a call, such as `Capacity.spot()`."""
        return call

    def value(self, value: Enum | bool) -> str:
        """Return a choice or a flag."""
        return f"{type(value).__name__}.{value.name}" if isinstance(value, Enum) else str(value)

    def part(self, setting: str, whole: str) -> str:
        """Return a setting of something that is no setting of the group's own."""
        return f"{setting} of {whole}"

    def acknowledge(self, rule: str) -> str:  # noqa: ARG002 - CDK says how beside each warning
        """Return how to acknowledge a warning, a sentence."""
        return ""


class FileWords(Words):
    """The words of a cluster file, whose errors begin with the place of the setting."""

    image = "an image of your own"
    image_setting = "image"
    without_image = "write image: latest"
    own_image = image
    idle = "idle settings"
    idle_off = "off: true"
    set_idle_off = "idle: {off: true}"
    no_schedule = "schedule: {windows: []}"
    vpc_range = "vpc_cidr"

    def call(self, call: str) -> str:
        """Return the key that stands for a call."""
        return call.rpartition(".")[2].removesuffix("()")

    def value(self, value: Enum | bool) -> str:
        """Return a choice or a flag."""
        return (value.name if isinstance(value, Enum) else str(value)).lower()

    def part(self, setting: str, whole: str) -> str:  # noqa: ARG002 - the place says it
        """Return the setting alone."""
        return setting

    def acknowledge(self, rule: str) -> str:
        """Return the setting of the file that acknowledges a warning."""
        return f"To accept this, write acknowledge: {{{rule}: <why>}}"


PYTHON, CLUSTER_FILE = Words(), FileWords()

WORDS_CONTEXT = "cdk-training-cluster:words"
"""The context of constructs whose settings stand in a cluster file."""

IN_A_FILE = "cluster-file"


def words_of(scope: IConstruct) -> Words:
    """Return the words of the user or file that gives the settings below a construct.

    Args:
        scope: The construct.
    """
    return CLUSTER_FILE if scope.node.try_get_context(WORDS_CONTEXT) == IN_A_FILE else PYTHON
