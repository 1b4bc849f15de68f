"""What came of the commands that nodes were sent, and what follows from it."""

from dataclasses import replace
from datetime import timedelta

from cluster_contract.hydration import HydrationAction, HydrationAnswer, HydrationStep
from cluster_hydration import messages
from cluster_hydration.nodes import BAD_REQUEST, NO_PROGRAM, NOT_MOUNTED, Ended
from cluster_hydration.place import Place, at, fail
from cluster_hydration.records import Command, DatasetState, Shard

MAX_PASSES = 5
"""How often a last look may find more to restore."""

FAILING = timedelta(hours=1)
"""For how long commands may fail without one that succeeds: nodes that have just begun are not set up yet."""

_AVOIDED = timedelta(minutes=5)
_MAX_FAILURES = 5


def take_answers(place: Place, state: DatasetState) -> DatasetState:
    """Return the state with what came of the commands, without those that cannot be running any more.

    Args:
        place: The data set.
        state: How far it was.
    """
    for command in state.commands:
        ended = _outcome(place, command)
        if ended is not None:
            place.nodes.vacate(command.instance)
            left = tuple(one for one in state.commands if one is not command)
            state = _take(place, replace(state, commands=left), command, ended)
    return state


def _outcome(place: Place, command: Command) -> Ended | None:
    ended = place.nodes.outcome(command) if command.id is not None else None
    if ended is not None:
        return ended
    if command.instance not in place.nodes.running:
        return Ended()
    if not command.may_run(place.now):
        return Ended(error=f"{command.instance} did not answer", blames_node=command.id is not None)
    return None


def _take(place: Place, state: DatasetState, command: Command, ended: Ended) -> DatasetState:
    answer = ended.answer
    if command.action in (HydrationAction.FAIL, HydrationAction.BEGIN):
        return _take_confirmation(place, state, command, ended)
    if state.step in (HydrationStep.DONE, HydrationStep.FAILED):
        return state
    if answer is not None:
        about = (answer.run, answer.shard, answer.shards)
        return _take_answer(place, state, command, answer) if about == _about(state, command) else state
    if not ended.error:
        return state
    since = state.failing_since or place.now
    if ended.code == BAD_REQUEST or place.now - since > FAILING:
        failed = fail(place, state, messages.failing_commands(place.directory, ended.error))
        return replace(failed, awaits_node=ended.code in (NOT_MOUNTED, NO_PROGRAM))
    return replace(_avoiding(place, state, command, ended), failing_since=since)


def _take_confirmation(place: Place, state: DatasetState, command: Command, ended: Ended) -> DatasetState:
    """Have another command sent, later or to another node, unless a node has done what it was asked."""
    done = ended.answer is not None and ended.answer.run == state.run
    if command.action is HydrationAction.BEGIN and state.awaits_node:
        return _goes_on(place, state) if done else _avoiding(place, state, command, ended)
    if command.action is HydrationAction.BEGIN:
        # A node of an older deployment does not know this action.
        return replace(_avoiding(place, state, command, ended), begun=done or ended.code == BAD_REQUEST)
    if done:
        return replace(state, marked=True)
    return _avoiding(place, state, command, ended)


def _goes_on(place: Place, state: DatasetState) -> DatasetState:
    state = replace(at(place, state, HydrationStep.WAITING), progressed=place.now, failing_since=None)
    return replace(state, awaits_node=False, reason=None)


def _avoiding(place: Place, state: DatasetState, command: Command, ended: Ended) -> DatasetState:
    avoided = {instance: until for instance, until in state.avoided.items() if until > place.now}
    if ended.blames_node:
        avoided[command.instance] = place.now + _AVOIDED
    return replace(state, avoided=avoided)


def _about(state: DatasetState, command: Command) -> tuple[str, int, int]:
    return state.run, command.shard, max(state.shards, 1)


def _take_answer(place: Place, state: DatasetState, command: Command, answer: HydrationAnswer) -> DatasetState:
    seen = Shard(
        files=answer.files,
        bytes=answer.bytes,
        restored_files=answer.restored_files,
        restored_bytes=answer.restored_bytes,
        failed_files=answer.failed_files,
        copying=answer.copying,
        counted=answer.counted,
        finished=answer.finished,
        shortage=answer.shortage,
    )
    known = {failure.path for failure in state.failures}
    new = [failure for failure in answer.failures if failure.path not in known]
    state = replace(state, failing_since=None, failures=(*state.failures, *new)[:_MAX_FAILURES])
    is_look, key = command.action is HydrationAction.FINISH, str(command.shard)
    if seen != (state.looked if is_look else state.answers.get(key)):
        state = replace(state, progressed=place.now)
    return _take_look(place, state, seen) if is_look else replace(state, answers={**state.answers, key: seen})


def _take_look(place: Place, state: DatasetState, seen: Shard) -> DatasetState:
    dataset = place.dataset
    if (seen.finished or seen.counted) and not seen.files and (dataset.patterns or dataset.max_gib is not None):
        return fail(place, state, messages.nothing_selected(place.directory, dataset))
    if seen.finished:
        return replace(
            at(place, state, HydrationStep.DONE), looked=seen, notice=messages.DONE, claimed=None, release_at=None
        )
    if not (seen.counted or seen.shortage):
        return replace(state, looked=seen)  # Its time was over: the next look goes on.
    if seen.shortage or (state.total.failed_files and seen.failed_files):
        short = messages.too_little_space(place.directory, seen)
        return fail(place, state, short if seen.shortage else messages.failed_files(seen, state.failures))
    passes = state.passes + 1
    if passes >= MAX_PASSES:
        return fail(place, state, messages.too_many_passes(place.directory, MAX_PASSES))
    run = f"{state.run.partition('.')[0]}.{passes}"
    state = at(place, state, HydrationStep.WAITING)
    return replace(state, passes=passes, run=run, shards=0, answers={}, looked=None, progressed=place.now)
