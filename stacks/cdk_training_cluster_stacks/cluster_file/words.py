"""The library speaks Python; a cluster file has words of its own for the same things."""

import re

_FILE_WORDS = (
    (re.compile(r"\bCapacity\.(\w+)\(\)"), lambda found: found[1]),
    (re.compile(r"\b(?:Placement|OnIdle|IdleScope)\.(\w+)"), lambda found: found[1].lower()),
    (re.compile(r"\bIdlePolicy\.off\(\)"), lambda _: "off: true"),
    (re.compile(r"\bIdleSignal\.(\w+)\(\)"), lambda found: found[1]),
    (re.compile(r"\ban idle_policy\b"), lambda _: "idle settings"),
    (re.compile(r"\b(\w+)=(True|False)\b"), lambda found: f"{found[1]}: {found[2].lower()}"),
    (re.compile(r"\b(True|False)\b"), lambda found: found[1].lower()),
    (re.compile(r"\bleave machine_image out\b"), lambda _: "write image: latest"),
    (re.compile(r"\b(?:your own |a )?machine_image\b"), lambda _: "an image of your own"),
)
"""What the library says in Python's words, and how it is said in a file."""


def in_file_words(sentence: str) -> str:
    """Return a sentence of the library's as the maker of a cluster file would say it.

    Args:
        sentence: The sentence, with names as they are in Python.
    """
    for pattern, words in _FILE_WORDS:
        sentence = pattern.sub(words, sentence)
    return sentence
