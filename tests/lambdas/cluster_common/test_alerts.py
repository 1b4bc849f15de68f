from datetime import UTC, datetime, timedelta

import pytest

from cluster_common.alerts import Alert, compare_alerts

NOW = datetime(2026, 11, 2, tzinfo=UTC)


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
        ([alert("end/1", 1)], [], {"problem"}, (["end/1"], [], ["end/1"])),
        ([alert("end/1", 0)], [], {"problem"}, ([], [], [])),
        ([], ["end/1"], {"problem"}, ([], [], ["end/1"])),
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


def test_the_oldest_ends_that_are_no_longer_found_make_room_in_a_tag() -> None:
    told = ["problem/a", *(f"end/{number:08}" for number in range(20))]

    after = compare_alerts([alert(told[1], 1), alert("end/new", 1)], told, known=(), now=NOW).told

    assert after == (*told[:2], *told[4:], "end/new")
    assert len(" ".join(after)) <= 256
