"""What sentences about settings call what their reader writes: in Python, or in a cluster file."""

from enum import Enum


class Words:
    """The words of the library's own callers.

    Attributes:
        image: An image that the reader gives.
        without_image: How to leave it to AWS.
        own_image: How to give one.
        idle: The settings of a group's idle nodes.
        idle_off: Those of nodes that are never stopped.
    """

    image = "a machine_image"
    without_image = "leave machine_image out"
    own_image = "your own machine_image"
    idle = "an idle_policy"
    idle_off = "IdlePolicy.off()"

    def call(self, call: str) -> str:
        """Return a call, such as `Capacity.spot()`."""
        return call

    def value(self, value: Enum | bool) -> str:
        """Return a choice or a flag."""
        return f"{type(value).__name__}.{value.name}" if isinstance(value, Enum) else str(value)

    def part(self, setting: str, whole: str) -> str:
        """Return a setting of something that is no setting of the group's own."""
        return f"{setting} of {whole}"


class FileWords(Words):
    """The words of a cluster file, whose errors begin with the place of the setting."""

    image = "an image of your own"
    without_image = "write image: latest"
    own_image = image
    idle = "idle settings"
    idle_off = "off: true"

    def call(self, call: str) -> str:
        """Return the key that stands for a call."""
        return call.rpartition(".")[2].removesuffix("()")

    def value(self, value: Enum | bool) -> str:
        """Return a choice or a flag."""
        return (value.name if isinstance(value, Enum) else str(value)).lower()

    def part(self, setting: str, whole: str) -> str:  # noqa: ARG002 - the place says it
        """Return the setting alone."""
        return setting


PYTHON, CLUSTER_FILE = Words(), FileWords()
