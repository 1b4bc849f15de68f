from datetime import UTC, datetime, timedelta

import pytest

from cluster_common.alerts import Alert, compare_alerts, end_key

NOW = datetime(2026, 11, 2, tzinfo=UTC)


LATER, PAST = (end_key("cr-1", NOW + timedelta(minutes=minutes)) for minutes in (1, 0))
MINUTE = int(NOW.timestamp()) // 60


def alert(key: str, minutes: int | None = None, delay: int = 0) -> Alert:
    expires = None if minutes is None else NOW + timedelta(minutes=minutes)
    return Alert(key=key, subject=key, text=key, expires=expires, delay=timedelta(minutes=delay))


@pytest.mark.parametrize(
    ("alerts", "told", "known", "expected"),
    [
        ([], [], {"problem"}, ([], [], [])),
        ([alert("problem/a")], [], {"problem"}, (["problem/a"], [], ["problem/a"])),
        ([alert("problem/a")], ["problem/a"], {"problem"}, ([], [], ["problem/a"])),
        ([alert("problem/b")], ["problem/a"], {"problem"}, (["problem/b"], [], ["problem/a", "problem/b"])),
        ([], ["problem/a", "problem/b"], {"problem"}, ([], ["problem/b"], [])),
        ([], ["problem/a"], set(), ([], [], ["problem/a"])),
        ([], ["problem/a", "versions/c"], {"versions"}, ([], ["versions/c"], ["problem/a"])),
        ([alert(LATER, 1)], [], {"problem"}, ([LATER], [], [LATER])),
        ([alert(PAST, 0)], [], {"problem"}, ([], [], [])),
        ([], [LATER, PAST], {"problem"}, ([], [], [LATER])),
        ([alert("surplus/a", delay=10)], [], {"surplus"}, ([], [], [f"surplus/a@{MINUTE}"])),
        (
            [alert("surplus/a", delay=10)],
            [f"surplus/a@{MINUTE - 9}", "problem/b"],
            (),
            ([], [], ["problem/b", f"surplus/a@{MINUTE - 9}"]),
        ),
        ([alert("surplus/a", delay=10)], [f"surplus/a@{MINUTE - 10}"], (), (["surplus/a"], [], ["surplus/a"])),
        ([alert("surplus/a", delay=10)], ["surplus/a"], (), ([], [], ["surplus/a"])),
        ([], [f"surplus/a@{MINUTE - 9}"], {"surplus"}, ([], [], [])),
        ([alert("surplus/a", delay=10)], ["surplus/a@x"], (), ([], [], [f"surplus/a@{MINUTE}"])),
    ],
)
def test_each_change_is_told_once(
    alerts: list[Alert], told: list[str], known: set[str], expected: tuple[list[str], list[str], list[str]]
) -> None:
    changes = compare_alerts(alerts, told, known=known, now=NOW)

    assert ([one.key for one in changes.new], list(changes.over), list(changes.told)) == expected
