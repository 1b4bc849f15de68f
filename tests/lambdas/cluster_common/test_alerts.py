from datetime import UTC, datetime, timedelta

import pytest

from cluster_common.alerts import Alert, compare_alerts

NOW = datetime(2026, 11, 2, tzinfo=UTC)


def alert(key: str, minutes: int | None = None) -> Alert:
    expires = None if minutes is None else NOW + timedelta(minutes=minutes)
    return Alert(key=key, subject=key, text=key, expires=expires)


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
    ],
)
def test_each_change_is_told_once(
    alerts: list[Alert], told: list[str], known: set[str], expected: tuple[list[str], list[str], list[str]]
) -> None:
    changes = compare_alerts(alerts, told, known=known, now=NOW)

    assert ([one.key for one in changes.new], list(changes.over), list(changes.told)) == expected


def test_the_oldest_keys_make_room_in_a_tag() -> None:
    told = [f"end/{number:08}" for number in range(20)]

    after = compare_alerts([alert("end/new", 1)], told, known=(), now=NOW).told

    assert (after[-1], after[0]) == ("end/new", told[1])
    assert len(" ".join(after)) <= 256
