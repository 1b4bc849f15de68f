"""How nodes run on in a Capacity Block when the cluster's file names the next one already."""

from dataclasses import replace

from cluster_common.times import time_text
from cluster_power.windows import Phase, Window


def with_successor(window: Window, node_group: str, successor: Window) -> Window:
    """Say in the window of the block that nodes run in what follows it.

    What is wrong with the next block is told while there is time to mend it.

    Args:
        window: What the block that the nodes run in allows.
        node_group: The node group.
        successor: What the block in the cluster's file allows.
    """
    then = _then(window, successor)
    if window.phase in (Phase.OPEN, Phase.CLOSING):
        sentence = window.sentence
        if window.phase is Phase.OPEN and window.down_at is not None:
            sentence = f"{node_group} runs on in {window.block} until {time_text(window.down_at)}"
        return replace(
            window,
            sentence=f"{sentence}; {then}",
            successor=successor.block,
            problem=successor.problem,
            problem_known=successor.problem_known,
        )
    sentence = f"{node_group}: {window.cause}" if window.phase is Phase.UNUSABLE else window.sentence
    problem = replace(window.problem, sentence=f"{sentence}; {then}.") if window.problem else None
    return replace(window, sentence=f"{sentence}; {then}", successor=successor.block, problem=problem)


def _then(window: Window, successor: Window) -> str:
    if successor.phase not in (Phase.BEFORE, Phase.OPEN, Phase.CLOSING):
        return successor.cause
    down_at, starts = window.down_at, successor.starts
    if down_at is None:
        return f"{successor.block} takes over when its nodes are gone"
    later = f"when it starts, at {time_text(starts)}" if starts and starts > down_at else "then"
    return f"{successor.block} takes over {later}"
