"""What is next for one data set: from the link to the last look, one step after another."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from types import MappingProxyType

from cluster_contract.hydration import HydrationAction, HydrationRequest, HydrationStep
from cluster_hydration import messages
from cluster_hydration.answers import take_answers
from cluster_hydration.links import Link, Task
from cluster_hydration.place import Place, at, fail
from cluster_hydration.records import Command, DatasetState

MAX_NODES = 16
"""How many nodes restore one data set at once."""

MAX_IMPORTS = 3
"""How often the function asks for an import in one run."""

STALL, COPIES = timedelta(hours=2), timedelta(days=1)
"""For how long nodes may work without a restored file, and for how long where Lustre says that it copies one."""

WORK, LONGEST_WORK = timedelta(days=2), timedelta(days=30)
"""For how long nodes may work at one run whatever its size, and for how long at most."""

# What the slowest file system restores each second; WORK covers a small one, whose throughput is less.
_BYTES_PER_SECOND, _FILES_PER_SECOND = 500_000_000, 100

MANY_FAILURES = 1_000
"""So many files that fail have one cause: no last look tries them again."""

# The first answer comes soon, with the counts; later ones just before the tick after the fourth.
_FIRST_SECONDS, _SECONDS = 45, 280
_LINK_PATIENCE = timedelta(hours=1)
_TASK_PATIENCE = timedelta(hours=6)
_IMPORT_PATIENCE = timedelta(minutes=30)
# For how long FSx lists a task that has ended: https://docs.aws.amazon.com/fsx/latest/LustreGuide/data-repository-tasks.html
_LISTED = timedelta(days=14)
_DAY = timedelta(days=1)
_RATE_OVER = timedelta(minutes=4)
_GIB = 1024**3
# From the first step to the last, and once around.
_MAX_STEPS = 8

_S = HydrationStep


def begin(place: Place, before: DatasetState | None = None) -> DatasetState:
    """Return the state of a new run; a data set that is not preloaded has nothing to restore.

    Args:
        place: The data set.
        before: The run before it. Default: - there is none.
    """
    now, dataset = place.now, place.dataset
    return DatasetState(
        step=_S.LINKING if dataset.preload else _S.DONE,
        since=now,
        # Of no other data set: requests to FSx with one token are one request.
        run=f"{now:%Y%m%dT%H%M%SZ}-{place.fingerprint}",
        began=now,
        progressed=now,
        measured=now,
        settings=place.fingerprint,
        ordered=before is not None and before.again,
        release_at=None if before is None else before.release_at,
        release_task=None if before is None else before.release_task,
    )


def request(place: Place, state: DatasetState, command: Command) -> HydrationRequest:
    """Return what a command asks a node.

    Args:
        place: The data set.
        state: How far it is.
        command: The command.
    """
    dataset = place.dataset
    first = command.action is HydrationAction.RESTORE and str(command.shard) not in state.answers
    return HydrationRequest(
        action=command.action,
        run=state.run,
        directory=place.directory,
        mount_point=place.mount_point,
        shard=command.shard,
        shards=max(state.shards, 1),
        seconds=_FIRST_SECONDS if first else _SECONDS,
        patterns=dataset.patterns,
        max_bytes=None if dataset.max_gib is None else dataset.max_gib * _GIB,
        reason=state.reason or "" if command.action is HydrationAction.FAIL else "",
    )


def advance(place: Place, state: DatasetState | None) -> DatasetState:
    """Return how far a data set is after all that can be done for it now; new commands are not sent yet.

    Args:
        place: The data set.
        state: How far it was. None: nothing is known of it.
    """
    now = place.now
    state = begin(place) if state is None else take_answers(place, state)
    if state.again or state.settings != place.fingerprint or _has_another_link(place, state):
        # Two runs at once would restore the same files.
        return state if state.commands else advance(place, begin(place, state))
    if place.dataset.preload:
        for _ in range(_MAX_STEPS):
            watched = _watch_link(place, state)
            state = _STEPS[watched.step](place, watched)
            if state.step is watched.step:
                break
        state = _begin_on_node(place, state)
    if state.step is _S.DONE:
        state = replace(state, compared=now) if state.compares(now) else state
        state = _release(place, state)
    if state.notice is not None and (state.claimed is None or now - state.claimed > timedelta(minutes=2)):
        state = replace(state, claimed=now)
    return _measured(state, now).clocked(now)


def _watch_link(place: Place, state: DatasetState) -> DatasetState:
    """Look at the link, which everything else needs; what has failed because of it goes on when it is mended."""
    if state.step is _S.DONE or (state.step is _S.FAILED and not state.recovers):
        return state
    link = place.links.at(place.dataset.path)
    if link is not None and link.lifecycle in ("MISCONFIGURED", "FAILED"):
        return fail(place, state, messages.broken_link(place.dataset.path, link), recovers=True)
    if link is None and state.step is _S.LINKING and place.now - state.since > _LINK_PATIENCE:
        return fail(place, state, messages.no_link(place.dataset.path), recovers=True)
    if link is None or link.lifecycle in ("CREATING", "DELETING"):
        return state if state.step is _S.FAILED else at(place, state, _S.LINKING)
    if state.step is _S.FAILED:
        return replace(at(place, state, _S.LINKING), reason=None, recovers=False, marked=False)
    return state


def _link(place: Place, state: DatasetState) -> DatasetState:
    link = place.links.at(place.dataset.path)
    if link is None or not _is_usable(link):
        return state
    return replace(at(place, state, _S.IMPORTING), link=link.identity)


def _has_another_link(place: Place, state: DatasetState) -> bool:
    """Say whether the link is not the one that the run is for; of what is done it is looked at once in a while."""
    if state.link is None or not place.dataset.preload or state.step is _S.FAILED:
        return False
    if state.step is _S.DONE and not state.compares(place.now):
        return False
    link = place.links.at(place.dataset.path)
    return link is not None and link.identity != state.link


def _is_usable(link: Link) -> bool:
    return link.lifecycle in ("AVAILABLE", "UPDATING")


def _import(place: Place, state: DatasetState) -> DatasetState:
    """Wait for the names; ask for them where the task ended without, or where nothing else brings new ones."""
    link = place.links.at(place.dataset.path)
    if link is None:
        return state
    task = _awaited(state, place.links.import_tasks(link))
    if task is None:
        if state.import_task is None and not _needs_import(state, link):
            if place.now - link.created > _LISTED:
                return _imported(place, state)
            is_early = place.now - link.created < _IMPORT_PATIENCE
        else:
            is_early = state.import_task is not None and place.now - state.since < _IMPORT_PATIENCE
        return state if is_early else _ask_import(place, state, link, task)
    if task.runs:
        return state
    if task.lifecycle == "SUCCEEDED" and (state.imports or not _needs_import(state, link)):
        return _imported(place, state)
    return _ask_import(place, state, link, task)


def _imported(place: Place, state: DatasetState) -> DatasetState:
    return replace(at(place, state, _S.WAITING), progressed=place.now, reason=None, recovers=False)


def _ask_import(place: Place, state: DatasetState, link: Link, last: Task | None) -> DatasetState:
    if state.imports >= MAX_IMPORTS:
        return fail(place, state, messages.failed_import(place.dataset.path, last, state.imports))
    asked = place.links.ask_import(link, f"{state.run}-{state.imports}")
    if asked is None and place.now - state.since > _TASK_PATIENCE:
        reason = messages.blocked_import(place.dataset.path)
        return replace(state, since=place.now, reason=reason, recovers=True, notice=messages.FAILED, claimed=None)
    if asked is None:
        return state
    return replace(state, import_task=asked, imports=state.imports + 1, since=place.now)


def _awaited(state: DatasetState, tasks: Sequence[Task]) -> Task | None:
    """Return the task that was asked for last, or the newest where none was."""
    wanted = [task for task in tasks if state.import_task in (None, task.id)]
    return wanted[0] if wanted else None


def _needs_import(state: DatasetState, link: Link) -> bool:
    return state.ordered and not link.imports_new


def _restore(place: Place, state: DatasetState) -> DatasetState:
    """Give the shards that nothing works at to nodes that are free."""
    state = _without_nodes(place, state)
    total = state.total
    if total.failed_files >= MANY_FAILURES and (total.finished or total.failed_files > total.restored_files):
        return fail(place, state, messages.failed_files(total, state.failures))
    if state.shards and not state.unfinished:
        if state.commands or state.shards == 1 or not total.shortage:
            return _after_shards(place, state)
        # Files that one node's part is too small for may fit where nothing else is under way.
        state = replace(state, alone=True, shards=0, answers={}, failures=())
    if (reason := _exhausted(place, state)) is not None:
        return fail(place, state, reason)
    usable = _usable(place, state)
    wanted = min(1 if state.alone else MAX_NODES, len(usable))
    if not state.shards or (wanted >= 2 * state.shards):
        if state.commands:
            return state  # They work at shards of the old number.
        if not usable:
            return at(place, state, _S.WAITING)
        state = replace(state, shards=wanted, answers={}, failures=())
    taken = {command.shard for command in state.commands}
    free = _free(place, state, usable)
    waiting = [shard for shard in state.unfinished if shard not in taken]
    for shard, instance in zip(waiting, free, strict=False):
        state = _command(place, state, HydrationAction.RESTORE, instance, shard)
    return _at_work(place, at(place, state, _S.RESTORING if state.commands else _S.WAITING))


def _after_shards(place: Place, state: DatasetState) -> DatasetState:
    if state.commands:
        return state
    if state.total.shortage:
        return fail(place, state, messages.too_little_space(place.directory, state.total))
    return replace(at(place, state, _S.FINISHING), progressed=place.now)


def _at_work(place: Place, state: DatasetState) -> DatasetState:
    """Count no time in which all nodes had other work."""
    return state if state.commands else replace(state, progressed=place.now)


def _limit(state: DatasetState) -> timedelta:
    return COPIES if (state.looked or state.total).copying else STALL


def _exhausted(place: Place, state: DatasetState) -> str | None:
    """Return why nodes work at the run no longer. None: they may go on."""
    if place.now - state.progressed > _limit(state):
        return messages.stalled(place.directory, _limit(state))
    longest = _longest_work(state)
    return messages.too_long(place.directory, longest) if state.at_work(place.now) > longest else None


def _longest_work(state: DatasetState) -> timedelta:
    """Return for how long nodes may work at a run; objects that are added after the first count do not extend it."""
    size = state.selected or state.total
    seconds = size.bytes / _BYTES_PER_SECOND + size.files / _FILES_PER_SECOND
    return min(WORK + timedelta(seconds=min(seconds, LONGEST_WORK.total_seconds())), LONGEST_WORK)


def _without_nodes(place: Place, state: DatasetState) -> DatasetState:
    """Take time without nodes for no time in which they could have done anything."""
    return state if place.nodes.online else replace(state, progressed=place.now, failing_since=None)


def _finish(place: Place, state: DatasetState) -> DatasetState:
    state = _without_nodes(place, state)
    if (reason := _exhausted(place, state)) is not None:
        return fail(place, state, reason)
    if not state.commands:
        for instance in _free(place, state, _usable(place, state))[:1]:
            return _command(place, state, HydrationAction.FINISH, instance)
    return _at_work(place, state)


def _begin_on_node(place: Place, state: DatasetState) -> DatasetState:
    """Have a node take the markers of earlier runs away where it takes a while until the first restore does."""
    if state.step in (_S.LINKING, _S.IMPORTING) and not state.begun and not state.commands:
        for instance in _free(place, state, _usable(place, state))[:1]:
            return _command(place, state, HydrationAction.BEGIN, instance)
    return state


def _tell_nodes(place: Place, state: DatasetState) -> DatasetState:
    """Have a node tell the jobs that wait; where no node can, look for one that can restore."""
    action = HydrationAction.BEGIN if state.awaits_node else HydrationAction.FAIL
    if not state.marked and not state.commands:
        for instance in _free(place, state, _usable(place, state))[:1]:
            return _command(place, state, action, instance)
    return state


def _done(_: Place, state: DatasetState) -> DatasetState:
    return state


_STEPS: Mapping[HydrationStep, Callable[[Place, DatasetState], DatasetState]] = MappingProxyType(
    {
        _S.LINKING: _link,
        _S.IMPORTING: _import,
        _S.WAITING: _restore,
        _S.RESTORING: _restore,
        _S.FINISHING: _finish,
        _S.DONE: _done,
        _S.FAILED: _tell_nodes,
    }
)


def _usable(place: Place, state: DatasetState) -> list[str]:
    avoided = {instance for instance, until in state.avoided.items() if until > place.now}
    return [instance for instance in place.nodes.online if instance not in avoided]


def _free(place: Place, state: DatasetState, usable: Sequence[str]) -> list[str]:
    own = {command.instance for command in state.commands}
    return [instance for instance in usable if instance not in own and place.nodes.is_free(instance)]


def _command(
    place: Place, state: DatasetState, action: HydrationAction, instance: str, shard: int = 0
) -> DatasetState:
    place.nodes.occupy(instance)
    command = Command(action=action, instance=instance, shard=shard, begun=place.now)
    return replace(state, commands=(*state.commands, command))


def _release(place: Place, state: DatasetState) -> DatasetState:
    """Have FSx free, once a day, the space of files that have not been used; and say where it could not."""
    after, now = place.dataset.release_after, place.now
    if after is None:
        return state
    # What was restored now may be old: nothing of it is released before that time has passed from now on.
    at = state.release_at or (state.since + after if place.dataset.preload else now)
    if now < at:
        return replace(state, release_at=at)
    link = place.links.at(place.dataset.path)
    if link is None or not _is_usable(link):
        return replace(state, release_at=now + _DAY)
    last = None if state.release_task is None else place.links.task(state.release_task)
    if last is not None and last.lifecycle == "FAILED":
        state = replace(state, reason=messages.failed_release(place.dataset.path, last), notice=messages.RELEASE)
    elif last is not None and last.lifecycle == "SUCCEEDED":
        state = replace(state, reason=None)
    path = place.dataset.path
    asked = place.links.ask_release(path, after, f"{state.run}-{now:%Y%m%d}")
    if asked is None:
        return state
    return replace(state, release_task=asked, release_at=now + _DAY)


def _measured(state: DatasetState, now: datetime) -> DatasetState:
    """Measure how fast contents come, from one answer to a later one."""
    there = state.total.restored_bytes
    if state.step is not _S.RESTORING:
        return replace(state, bytes_per_second=None)
    if state.measured < state.since or there < state.measured_bytes:
        return replace(state, measured=now, measured_bytes=there, bytes_per_second=None)
    time = now - state.measured
    if there == state.measured_bytes or (time < _RATE_OVER and state.bytes_per_second is not None):
        return state
    rate = round((there - state.measured_bytes) / max(time.total_seconds(), 1))
    return replace(state, measured=now, measured_bytes=there, bytes_per_second=rate)
