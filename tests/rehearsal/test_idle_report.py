"""What a person sees of the idle stop, whole in a terminal of 80 columns."""

import io

from idle_stories import node, settings, story
from rehearsal.idle_report import show_idle
from rehearsal.idle_story import IdleStory
from rehearsal.report import make_console

_NODES = {
    node("i-0a1b2c3d4e5f67890"): "busy",
    node("i-0b1b2c3d4e5f67890"): "silent",
    node("i-0c1b2c3d4e5f67890"): "idle",
    node("i-0d1b2c3d4e5f67890"): "idle",
    node("i-0e1b2c3d4e5f67890", "[extras]"): "idle",
}
_WORKED = """\
Idle stop, after an hour of work, silence and idleness
┏━━━━━━━━━━━━┳━━━━━━━━━━━━━━━━━━━━━┳━━━━━━━━━━┳━━━━━━━━━┳━━━━━━━━━━━━┓
┃ node group ┃ nodes               ┃ reported ┃ verdict ┃ why        ┃
┡━━━━━━━━━━━━╇━━━━━━━━━━━━━━━━━━━━━╇━━━━━━━━━━╇━━━━━━━━━╇━━━━━━━━━━━━┩
│ [extras]   │ i-0e1b2c3d4e5f67890 │ idle     │ warn    │ is warn    │
│ workers    │ i-0a1b2c3d4e5f67890 │ busy     │ busy    │ is busy    │
│ workers    │ i-0b1b2c3d4e5f67890 │ silent   │ unknown │ is unknown │
│ workers    │ 2                   │ idle     │ busy    │ is busy    │
└────────────┴─────────────────────┴──────────┴─────────┴────────────┘
All of them idle from now on: people are warned of [extras] at once and of workers 70 minutes later.
Idle stop, what became of them
┏━━━━━━━━━━━━┳━━━━━━━━━━━━━━━━━━━━━┳━━━━━━━━━┳━━━━━━━━━┳━━━━━━━━━━━━┓
┃ node group ┃ nodes               ┃ after   ┃ verdict ┃ why        ┃
┡━━━━━━━━━━━━╇━━━━━━━━━━━━━━━━━━━━━╇━━━━━━━━━╇━━━━━━━━━╇━━━━━━━━━━━━┩
│ [extras]   │ i-0e1b2c3d4e5f67890 │ 30 min  │ stopped │ is stopped │
│ workers    │ 4                   │ 100 min │ stopped │ is stopped │
└────────────┴─────────────────────┴─────────┴─────────┴────────────┘
5 of 5 nodes were stopped in 4 runs.
"""

_RESERVED = """\
Idle stop, what became of them
┏━━━━━━━━━━━━┳━━━━━━━┳━━━━━━━━┳━━━━━━━━━━┳━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━┓
┃ node group ┃ nodes ┃ after  ┃ verdict  ┃ why                                 ┃
┡━━━━━━━━━━━━╇━━━━━━━╇━━━━━━━━╇━━━━━━━━━━╇━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━┩
│ workers    │ i-1   │ 70 min │ reserved │ is idle in the capacity reservation │
│            │       │        │          │ cr-0a1b2c3d4e5f67890, which is      │
│            │       │        │          │ billed whether it runs or not       │
└────────────┴───────┴────────┴──────────┴─────────────────────────────────────┘
0 of 1 nodes were stopped in 2 runs.
"""


def _shown(told: IdleStory) -> str:
    file = io.StringIO()
    show_idle(make_console(file, width=80), told)
    return "".join(f"{line.rstrip()}\n" for line in file.getvalue().splitlines())


def test_nodes_of_which_all_is_the_same_have_one_row() -> None:
    runs = {
        0: "busy unknown busy busy warn",
        30: "busy unknown busy busy stopped",
        70: "warn warn warn warn -",
        100: "stopped stopped stopped stopped -",
    }
    assert _shown(story(settings({"workers": {}, "[extras]": {}}), _NODES, runs)) == _WORKED


def test_a_reason_is_folded_and_loses_nothing() -> None:
    told = story(settings({"workers": {}}), {node("i-1", reserved=True): "busy"}, {0: "busy", 70: "reserved"})
    told.ticks[1]["nodes"][0]["reason"] = (
        "i-1 of workers is idle in the capacity reservation cr-0a1b2c3d4e5f67890, which is billed whether it runs or "
        "not"
    )
    _, _, became = _shown(told).partition("All of them idle from now on.\n")
    assert became == _RESERVED
