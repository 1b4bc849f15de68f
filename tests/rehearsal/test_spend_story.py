"""The story of a budget that is exceeded: a right one has no differences, and each wrong thing is one."""

from typing import Any

import pytest

from cdk_training_cluster import Budget, OnExceed
from rehearsal.spend_run import SpendStory

_WHOLE, _STOPPED = {"workers": 2, "pod": 4}, {"workers": 0, "pod": 4}


def story(on_exceed: OnExceed = OnExceed.STOP, **changes: Any) -> SpendStory:
    spent = {
        "month_to_date_usd": 2000.0,
        "unknown_prices": ["capacity-block cr-1"],
        "kinds": {"on-demand": {}},
        "acts": {"stops": ["workers"]},
    }
    acts = on_exceed is OnExceed.STOP
    sizes = {"exceeded": _WHOLE, "warning over": _STOPPED if acts else _WHOLE, "resumed": _WHOLE, "later": _WHOLE}
    return SpendStory(
        budget=Budget(monthly_usd=1000, on_exceed=on_exceed),
        saving=["workers"],
        said={"exceeded": {**spent, **({} if acts else {"acts": {"stops": []}}), **changes.pop("said", {})}},
        sizes={**sizes, **changes.pop("sizes", {})},
        thresholds=changes.pop("thresholds", [500, 800, 1000]),
    )


@pytest.mark.parametrize("on_exceed", OnExceed)
def test_a_right_one_is_nothing_to_say(on_exceed: OnExceed) -> None:
    assert list(story(on_exceed).differences()) == []


@pytest.mark.parametrize(
    ("changes", "difference"),
    [
        (
            {"said": {"month_to_date_usd": 12.5, "unknown_prices": ["spot p5.48xlarge us-east-1b"]}},
            "spend: 12.50 USD were counted, without the prices of spot p5.48xlarge us-east-1b",
        ),
        ({"said": {"acts": {"stops": ["pod"]}}}, "spend: people were warned of ['pod'], not of ['workers']"),
        (
            {"thresholds": [500.0]},
            "spend: alarms on this month's dollars are at [500.0], the budget says [500.0, 800.0, 1000.0]",
        ),
        (
            {"sizes": {"warning over": _WHOLE}},
            f"spend, warning over: the node groups have {_WHOLE} nodes, not {_STOPPED}",
        ),
        ({"sizes": {"resumed": _STOPPED}}, f"spend, resumed: the node groups have {_STOPPED} nodes, not {_WHOLE}"),
        ({"sizes": {"later": _STOPPED}}, f"spend, later: the node groups have {_STOPPED} nodes, not {_WHOLE}"),
    ],
)
def test_what_is_wrong_is_told(changes: dict[str, Any], difference: str) -> None:
    assert list(story(**changes).differences()) == [difference]
