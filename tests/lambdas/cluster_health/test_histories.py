"""What holds in each history of a node group, whatever breaks, is lost, is refused or is ordered.

No repair beyond the budget, none on what was not read, none of a healthy node, one node at a time, no node that works
terminated in another's place; and in the end a whole group, whose power function keeps its size, with no node left in
Standby. `make test-histories` draws 100,000.
"""

import os
from collections import Counter

import pytest

from cluster_health.outcomes import Outcome
from health_histories import History

_NUMBER = int(os.environ.get("HEALTH_HISTORIES", "240"))
_CHUNK = 1000

_DECIDED = {f"decided: {one}" for one in set(Outcome) - {Outcome.OWNER, Outcome.REPORT, Outcome.BUSY}}
_DONE = {f"done: {one}" for one in (Outcome.CORDON, Outcome.REBOOT, Outcome.REPLACE, Outcome.RETURN)}
_HAPPENS = {
    *("node breaks", "node is silent", "node recovers", "node vanishes", "node never boots", "host comes back"),
    "EC2 terminates a node in Standby",
    *("harmless fault", "mount fails or answers", "capacity changes", "report lost", "report comes twice"),
    *("answer: busy", "answer: refused", "answer: lost", "answer: crash", "record not written", "two runs at once"),
    *("group not read", "wanted not read", "kept not read", "power function fails"),
    *("operator keeps a node", "operator resizes", "operator orders"),
}


@pytest.mark.parametrize("first", range(0, _NUMBER, _CHUNK))
def test_every_history_keeps_the_promises(first: int) -> None:
    met = Counter[str]()
    for seed in range(first, min(first + _CHUNK, _NUMBER)):
        history = History(seed)
        history.run(40)
        history.settle_down()
        met += history.met
    assert met.keys() >= _DECIDED | _DONE | _HAPPENS
