"""The commands that documents show: in console blocks, in sentences, and in the comments of example cluster files."""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from documents import PAGES, blocks_of, commands, text_of
from examples import EXAMPLES

DOCUMENTS = [*PAGES, "CONTRIBUTING.md", "job/README.md", *EXAMPLES]
PROGRAMS = ("cdk", "make", "training-cluster")

_INLINE = re.compile(r"`((?:cdk|make|training-cluster) [^`\n]+)`")
# A comment shows one at the end of a sentence, after two spaces, or on a line of its own.
_COMMENT = re.compile(r"^#(?: .*?:?  | {3})((?:cdk|make|training-cluster) [^#\n]+)", re.MULTILINE)
# What a document leaves to its reader, and what a test takes for it.
_PLACES = {
    "[CLUSTER=…]": "",
    "DIRECTORY": "kubernetes",
    "FILE": "clusters/base-pod.yaml",
    "NAME": "base-pod",
    "USD": "1",
    "VERB": "status",
}


@dataclass(frozen=True)
class Shown:
    """A command that a document shows.

    Attributes:
        document: Where.
        words: The command.
        in_block: Whether it is shown to be run; a sentence may name a command by its first words alone.
    """

    document: str
    words: tuple[str, ...]
    in_block: bool

    @property
    def is_only_named(self) -> bool:
        """Whether a sentence means a command by its first words, and gives no file and no name."""
        return not self.in_block and not any(re.match(r"\w", word) for word in self.words[2:])

    @property
    def text(self) -> str:
        """The command in one line."""
        return " ".join(self.words)


def shown_commands() -> list[Shown]:
    """Return the commands of this project's programs that the documents show, in their order."""
    return [shown for document in DOCUMENTS for shown in _commands_of(document)]


def _commands_of(document: str) -> Iterator[Shown]:
    text = _filled(text_of(document))
    if document.endswith(".yaml"):
        shown = [(line, True) for line in _COMMENT.findall(text)]
    else:
        in_blocks = [(_filled(block.text), True) for block in blocks_of(document, "console")]
        shown = in_blocks + [(f"$ {line}", False) for line in _INLINE.findall(text)]
    for lines, in_block in shown:
        for words in commands(lines if lines.startswith("$") or "\n" in lines else f"$ {lines}"):
            if words and words[0] in PROGRAMS:
                yield Shown(document, tuple(words), in_block)


def _filled(text: str) -> str:
    for place, word in _PLACES.items():
        text = re.sub(rf"(?<=[ =]){re.escape(place)}(?![\w=])", word, text)
    return text
