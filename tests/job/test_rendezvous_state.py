"""The state of torch's rendezvous lies where each job of the cluster may write, and runs no code of another job."""

import os
import pickle
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from cluster_job.rendezvous_state import ForeignStateError, checked


class _Call:
    """Calls a function when it is unpickled."""

    def __init__(self, function: Any, *arguments: object) -> None:
        self._called = function, arguments

    def __reduce__(self) -> Any:
        return self._called


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
def test_a_state_that_another_job_wrote_runs_no_code(tmp_path: Path, protocol: int) -> None:
    made = tmp_path / "made"
    state = pickle.dumps({"participants": _Call(os.mkdir, str(made))}, protocol)
    with pytest.raises(ForeignStateError, match=r"the state of the rendezvous .* names (posix|nt)\.mkdir"):
        checked(state)
    assert not made.exists()


@pytest.mark.parametrize(
    "state",
    [
        b"\x80\x04\x8c\x08datetime\x8c\x0cdatetime.now\x93)R.",  # an attribute of a class that is allowed
        b"(S'x'\nios\nsystem\n.",
        b"cbuiltins\neval\n.",
        b"\x82\x01.",  # a class of the registry of extensions
        b"P1\n.",
        b"no pickle",
        b"",
    ],
)
def test_what_is_no_state_is_refused(state: bytes) -> None:
    with pytest.raises(ForeignStateError, match="the state of the rendezvous in the table of runs"):
        checked(state)


def test_the_times_of_a_state_are_taken() -> None:
    now = datetime.now(UTC)
    for times in ({"deadline": now, "waiting": {1, 2}}, {"deadline": now.replace(tzinfo=None), "left": timedelta(1)}):
        state = pickle.dumps(times)
        assert pickle.loads(checked(state)) == times  # noqa: S301
