"""What every part of a status is: it asks AWS one thing, and says what came of it."""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, ClassVar, Generic, TypeAlias, TypeVar

from cdk_training_cluster_cli.core.output import Table
from cdk_training_cluster_cli.observe.deployed import Deployed

Answer = TypeVar("Answer")


@dataclass(frozen=True, kw_only=True)
class Bar:
    """How far something is.

    Attributes:
        name: What it is.
        percent: How far, 0 to 100. None: it is not known.
        text: What is said of it.
    """

    name: str
    percent: float | None
    text: str


Item: TypeAlias = "str | Table | Bar"


@dataclass(frozen=True, kw_only=True)
class Moment:
    """What the parts have in common when they say what they found.

    Attributes:
        now: When AWS was asked.
        notes: What parts say of nodes, in a word or two, by the nodes' ids.
        all: Whether every node is shown.
    """

    now: datetime
    notes: Mapping[str, str]
    all: bool = False


class Part(ABC, Generic[Answer]):
    """One part of a cluster's status. What it finds may be asked of in a thread of its own.

    Attributes:
        key: Its name in JSON.
        title: Its heading.
    """

    key: ClassVar[str]
    title: ClassVar[str]

    @abstractmethod
    def ask(self, cluster: Deployed) -> Answer | None:
        """Ask AWS. None: the cluster has nothing of this kind.

        Raises:
            ValueError: AWS refuses; the sentence says why.
        """

    @abstractmethod
    def lines(self, answer: Answer, moment: Moment) -> Iterator[Item]:
        """Yield what a person reads."""

    def values(self, answer: Answer) -> Any:  # noqa: ANN401 - JSON is of any type
        """Return what a program reads."""
        return answer

    def notes(self, answer: Answer, now: datetime) -> Mapping[str, str]:  # noqa: ARG002 - for those that say something
        """Return what it says of nodes, in a word or two, by their ids."""
        return {}

    def waits(self, answer: Answer) -> bool:  # noqa: ARG002 - likewise
        """Say whether `--wait` waits for it."""
        return False

    def has_failed(self, answer: Answer) -> bool:  # noqa: ARG002 - likewise
        """Say whether the command ends with status 1 for its sake."""
        return False
