"""What a terminal of 80 columns shows of a table, beside one that has room for everything."""

from collections import Counter
from collections.abc import Callable

import pytest

_LINE = "─"


def words(shown: str) -> Counter[str]:
    """Count the words of what was shown, without the line below headings."""
    return Counter(word for word in shown.split() if not word.startswith(_LINE))


def folds_at_80_columns(show: Callable[[], str], monkeypatch: pytest.MonkeyPatch) -> str:
    """Check that 80 columns break no word, lose none and are enough for all lines of several words.

    Args:
        show: Shows it, as wide as COLUMNS says, and returns it.
        monkeypatch: Sets COLUMNS.
    """
    monkeypatch.setenv("COLUMNS", "1000")
    whole = show()
    monkeypatch.setenv("COLUMNS", "80")
    folded = show()
    assert words(folded) == words(whole)
    assert [line for line in folded.splitlines() if len(line) > 80 and len(line.lstrip("- ").split()) > 1] == []
    return folded
