"""Whatever happens, in whatever order: hydration ends, says the truth once, and never works twice at one shard."""

from hypothesis import given
from hypothesis import strategies as st

from cluster_common.actions import Action
from cluster_contract.hydration import HydrationStep
from hydration_scene import DATA, HydrationScene

_FAULTS = [
    *(("dynamodb", one) for one in ("GetItem", "PutItem")),
    *(("lustre", one) for one in ("DescribeDataRepositoryAssociations", "CreateDataRepositoryTask")),
    *(("nodes", one) for one in ("SendCommand", "GetCommandInvocation", "DescribeInstanceInformation")),
    *(("nodes", "PutParameter"), ("topic", "Publish")),
]
_FATES = ["hang", "lost", "Cancelled", "TimedOut", "garbage", "3", "127", "1", "2"]


class _EndedError(BaseException):
    """A function that is ended at a call."""


def _happens(scene: HydrationScene, what: str, number: int) -> None:
    files, nodes = scene.nodes.files[DATA], scene.nodes.nodes
    match what:
        case "fault":
            service, operation = _FAULTS[number % len(_FAULTS)]
            getattr(scene, service).fail_next(operation, "ThrottlingException")
        case "end":
            service, operation = _FAULTS[number % len(_FAULTS)]
            getattr(scene, service).on_call = lambda called: _end(scene, called == operation)
        case "kill" if nodes:
            del nodes[sorted(nodes)[number % len(nodes)]]
        case "launch":
            scene.nodes.nodes[f"i-{number:08x}{len(scene.nodes.sent):09x}"] = True
        case "offline" if nodes:
            nodes[sorted(nodes)[number % len(nodes)]] = bool(number % 2)
        case "fate":
            scene.nodes.fates.append(_FATES[number % len(_FATES)])
        case "release":
            files.released |= set(range(0, files.count, 1 + number % 7))
        case "slow":
            files.seconds = 50 + 3 * number
        case "break":
            files.broken = {number % files.count} if number % 3 else set()
        case "link":
            scene.lustre.set_link("/data", ["AVAILABLE", "MISCONFIGURED", "UPDATING", "DELETING"][number % 4], "why")
        case "task":
            scene.lustre.tasks[-1]["Lifecycle"] = ["FAILED", "CANCELED", "EXECUTING", "SUCCEEDED"][number % 4]
        case "order":
            _try(lambda: scene.run(Action.RUN), scene)


def _end(scene: HydrationScene, now: bool) -> None:
    if now:
        for service in (scene.dynamodb, scene.lustre, scene.nodes, scene.topic):
            service.on_call = lambda _: None
        raise _EndedError


def _try(step: object, scene: HydrationScene) -> int:
    """Take a step; return whether the function was ended in it."""
    try:
        step()  # type: ignore[operator]
    except _EndedError:
        return 1
    except Exception as error:
        if "ThrottlingException" not in str(error):
            raise
        scene.errors.append(str(error))
    return 0


_EVENTS = [
    "fault",
    "end",
    "kill",
    "launch",
    "offline",
    "fate",
    "release",
    "slow",
    "break",
    "link",
    "task",
    "order",
    "tick",
]
_STEPS = st.lists(st.tuples(st.sampled_from(_EVENTS), st.integers(0, 99), st.integers(0, 9)), max_size=25)


@given(_STEPS)
def test_it_ends_and_says_the_truth(steps: list[tuple[str, int, int]]) -> None:
    scene = HydrationScene(files=60)
    ended = 0
    for what, number, minutes in steps:
        _happens(scene, what, number)
        for _ in range(minutes):
            before = len(scene.messages)
            ended += _try(scene.tick, scene)
            _is_true(scene, before)
    # All is mended, but for files that cannot be restored.
    for service in (scene.dynamodb, scene.lustre, scene.nodes, scene.topic):
        service.mend()
        service.on_call = lambda _: None
    scene.lustre.set_link("/data", "AVAILABLE")
    scene.nodes.fates = []
    scene.nodes.nodes |= {f"i-{number:017x}": True for number in range(3)}
    settled = 0
    for _ in range(200):
        before = len(scene.messages)
        scene.tick()
        _is_true(scene, before)
        settled = settled + 1 if scene.steps["/data"] in (HydrationStep.DONE, HydrationStep.FAILED) else 0
        if settled > 10:  # It may wait for a node that can restore.
            break
    scene.tick(10)
    assert scene.steps["/data"] in (HydrationStep.DONE, HydrationStep.FAILED), scene.steps
    # Then nothing is said, or done, any more, but that the link is read once an hour, and that it was is written.
    said, calls = len(scene.messages), len(scene.calls)
    assert said
    scene.tick(10)
    assert len(scene.messages) == said
    assert len(scene.calls) - calls in (10, 13)


def _is_true(scene: HydrationScene, before: int) -> None:
    """Look at what was said in a run: that all is there only if a node had just seen it."""
    for title, _ in scene.messages[before:]:
        if title.endswith("is hydrated"):
            looks = [one for one in scene.nodes.sent if one.request["action"] == "finish" and one.answer]
            assert looks
            assert looks[-1].answer is not None
            assert looks[-1].answer["finished"]
