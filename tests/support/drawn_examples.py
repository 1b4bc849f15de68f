"""How many examples properties draw."""

from hypothesis import settings


def examples(count: int) -> settings:
    """Return settings for so many examples with every change, and for ten times as many where they are random.

    Args:
        count: How many `pytest` draws; `pytest --hypothesis-profile=random` draws ten times as many.
    """
    drawn = settings()
    return settings(drawn, max_examples=count if drawn.derandomize else 10 * count)
