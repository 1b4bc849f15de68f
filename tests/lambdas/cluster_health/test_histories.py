"""What holds in each history of a node group, whatever breaks, is lost, is refused or is ordered.

No repair beyond the budget, none on what was not read, none of a healthy node, one node at a time, no node that works
terminated in another's place; and in the end a whole group, whose power function keeps its size, with no node left in
Standby. `make test-histories` draws 100,000.
"""

import os

import pytest

from health_histories import History

_NUMBER = int(os.environ.get("HEALTH_HISTORIES", "16"))
_CHUNKS = 8


@pytest.mark.parametrize("chunk", range(_CHUNKS))
def test_every_history_keeps_the_promises(chunk: int) -> None:
    acts = set[str]()
    for seed in range(chunk, _NUMBER, _CHUNKS):
        history = History(seed)
        history.run(60)
        history.settle_down()
        acts |= {act for _, act, _ in history.done}
    assert acts >= {"cordon"}
