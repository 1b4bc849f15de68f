"""What a rule about settings is, and what is said of settings that break one."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Generic, TypeAlias, TypeVar

Setting: TypeAlias = tuple[str | int, ...]
"""A setting by its path of arguments: `("node_groups", 0, "capacity", "max_price")`."""

Found: TypeAlias = str | tuple[Setting, str]
"""A sentence about a rule's own setting, or one with the setting that it is about."""

Subject = TypeVar("Subject")


class Level(Enum):
    """What a broken rule means."""

    ERROR = "error"
    """AWS refuses it, or it cannot do what it is for: nothing is made."""

    WARNING = "warning"
    """It is allowed, and will surprise."""


@dataclass(frozen=True, kw_only=True)
class Problem:
    """One setting that breaks a rule.

    Attributes:
        setting: The setting, by its path of arguments.
        message: What was given, what is allowed, and how to mend it.
        rule: The rule's id.
        of: What the setting is of, if the sentence needs it: `node group 'workers'`.
    """

    setting: Setting
    message: str
    rule: str
    of: str = ""

    def __str__(self) -> str:
        return f"{self.of}: {self.message}" if self.of else self.message


class SettingsError(ValueError):
    """Settings that break rules; its text is a line for each.

    Attributes:
        problems: All that is wrong.
    """

    def __init__(self, problems: Iterable[Problem]) -> None:
        self.problems: tuple[Problem, ...] = tuple(problems)
        super().__init__("\n".join(map(str, self.problems)))


def refuse(found: Mapping[str, Iterable[str]], more: Iterable[Problem] = (), *, order: Sequence[str] = ()) -> None:
    """Refuse settings that are wrong.

    Args:
        found: What is wrong by itself, by setting.
        more: What is wrong beside other settings.
        order: The settings, in the order in which to tell. Default: - as found.

    Raises:
        SettingsError: Anything is.
    """
    problems = [
        Problem(setting=(setting,), message=message, rule="setting")
        for setting, messages in found.items()
        for message in messages
    ]
    problems += more
    problems.sort(key=lambda each: order.index(str(each.setting[0])) if each.setting[0] in order else len(order))
    if problems:
        raise SettingsError(problems)


@dataclass(frozen=True, kw_only=True)
class Rule(Generic[Subject]):
    """One thing that AWS says about settings.

    Attributes:
        id: The rule's name; a warning is acknowledged as `cdk-training-cluster:<id>`.
        source: Where AWS says so.
        find: Yields a sentence for each way in which the subject breaks the rule. What is not known before the
            deployment breaks none.
        setting: The setting that the sentences are about, from the subject on. Default: - `find` says it with each.
        level: What a broken rule means. Default: - an error.
    """

    id: str
    source: str
    find: Callable[[Subject], Iterator[Found]]
    setting: Setting = ()
    level: Level = Level.ERROR


Find: TypeAlias = Callable[[Subject], Iterator[Found]]


class Rules(list[Rule[Subject]]):
    """A table of rules: each is a function, and above it what AWS documents."""

    def rule(
        self, id: str, source: str, *setting: str, level: Level = Level.ERROR
    ) -> Callable[[Find[Subject]], Find[Subject]]:
        """Return the decorator that adds a function to the table as the `find` of a rule.

        Args:
            id: The rule's name.
            source: Where AWS says so.
            setting: The setting that the sentences are about. Default: - `find` says it with each.
            level: What a broken rule means. Default: - an error.
        """

        def add(find: Find[Subject]) -> Find[Subject]:
            self.append(Rule(id=id, source=source, find=find, setting=setting, level=level))
            return find

        return add


def broken(
    rules: Iterable[Rule[Subject]], subject: Subject, *, level: Level = Level.ERROR, at: Setting = (), of: str = ""
) -> Iterator[Problem]:
    """Yield what the rules of one level find.

    Args:
        rules: The rules, in the order of their table.
        subject: What they check.
        level: The level. Default: - errors.
        at: The setting that the subject stands at. Default: - it is the whole.
        of: What the subject is. Default: - the sentences say it.
    """
    for rule in rules:
        if rule.level is level:
            for found in rule.find(subject):
                setting, message = (rule.setting, found) if isinstance(found, str) else found
                yield Problem(setting=(*at, *setting), message=message, rule=rule.id, of=of)
