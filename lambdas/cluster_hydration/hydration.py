"""One run: read, decide what is next for each data set, write that down, do it, report."""

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from datetime import datetime

from aws_lambda_powertools import Logger
from botocore.exceptions import ClientError

from cluster_common.actions import Action
from cluster_common.clients import Clients
from cluster_common.errors import AWS_ERRORS
from cluster_common.failures import Failures
from cluster_common.messages import publish
from cluster_common.state_table import StateChangedError, StateItem, StateTable
from cluster_contract.codec import encode, read
from cluster_contract.events import EVENT_FIELD, Event
from cluster_contract.hydration import (
    HydratedDataset,
    HydrationFunctionSettings,
    HydrationProgress,
    HydrationStep,
    progress_parameter,
)
from cluster_contract.state import StatePart
from cluster_hydration import messages
from cluster_hydration.links import Links
from cluster_hydration.nodes import Nodes
from cluster_hydration.place import Place, directory
from cluster_hydration.records import Command, DatasetState
from cluster_hydration.reports import emit_progress, emit_run, progress
from cluster_hydration.steps import advance, request

_ITEM, _DATASETS = "datasets", "datasets"
_BAD_REQUESTS = range(400, 500)

States = dict[str, DatasetState]


class HydrationRun:
    """Do what is next for each data set, once.

    What is about to be done is written down first, under the condition that no other run has written since: of two
    runs at once one sends commands, and what a run that ends halfway has sent counts as sent.
    """

    def __init__(self, settings: HydrationFunctionSettings, aws: Clients, logger: Logger, *, now: datetime) -> None:
        """Read nothing yet.

        Args:
            settings: The function's settings.
            aws: What it talks to.
            logger: Where it writes what it does.
            now: The time, in UTC.
        """
        self._settings, self._aws, self._logger = settings, aws, logger
        self._now = now.replace(microsecond=0)
        self._failures = Failures(logger, subject_key="dataset")
        key = StatePart.HYDRATION.key(settings.cluster)
        self._table = StateTable(aws.dynamodb(), settings.state_table, key)

    def run(self, action: Action) -> dict[str, object]:
        """Do what an event asks for, and return how far the data sets are.

        Raises:
            PartialFailureError: Something failed, after everything was tried.
            StateChangedError: A command met another run, and was not recorded.
        """
        seen = self._table.read(_ITEM)
        before = {path: read(DatasetState, raw) for path, raw in seen.values.get(_DATASETS, {}).items()}
        if action is Action.STATUS:
            return self._report(before)
        if action is Action.RUN:
            failed = [path for path, state in before.items() if state.step is HydrationStep.FAILED]
            again = {path: replace(before[path], again=True) for path in failed or before}
            self._write(seen, before | again)
            return self._report(before | again)
        states = self._tick(seen, before)
        emit_run(self._settings.cluster, states, succeeded=not self._failures)
        self._failures.raise_all()
        return self._report(states)

    def _tick(self, seen: StateItem, before: States) -> States:
        known = {dataset.path: dataset for dataset in self._settings.datasets}
        kept = {path: state for path, state in before.items() if path in known}
        due = [
            one
            for one in known.values()
            if one.path not in kept or not kept[one.path].rests(one, self._settings.file_system, self._now)
        ]
        if not due:
            # A data set that comes back is another: its link is new, and may show something else.
            return kept if kept == before else self._without(seen, kept)
        places = self._places(due, kept)
        after = {path: self._advance(place, kept.get(path)) for path, place in places.items()}
        states = kept | {path: state for path, state in after.items() if state is not None}
        if states == before:
            if any(state.step not in (HydrationStep.DONE, HydrationStep.FAILED) for state in states.values()):
                self._show(states)  # What waits is no function that has stopped.
            return states
        try:
            seen = self._write(seen, states)
        except StateChangedError:
            self._logger.info("another run changed the state at the same moment; the next run goes on from there")
            return states
        done = {path: self._apply(places[path], kept.get(path), states[path]) for path in places if path in states}
        if states | done != states:
            states |= done
            try:
                self._write(seen, states)
            except StateChangedError:
                # What was sent is taken for running until it cannot be.
                self._logger.info("an operator's command changed the state during this run; the next run applies it")
        self._show(states)
        return states

    def _without(self, seen: StateItem, kept: States) -> States:
        """Write down what is left where data sets have been taken out."""
        with suppress(StateChangedError):  # The next run does it.
            self._write(seen, kept)
        return kept

    def _places(self, due: "list[HydratedDataset]", kept: States) -> dict[str, Place]:
        settings, aws = self._settings, self._aws
        links = Links(aws.fsx(), settings.file_system)
        nodes = Nodes(aws.ec2(), aws.ssm(), aws.ssm_once(), settings)
        for state in kept.values():
            for command in state.commands:
                nodes.occupy(command.instance)
        return {
            one.path: Place(
                dataset=one,
                file_system=settings.file_system,
                mount_point=settings.mount_point,
                links=links,
                nodes=nodes,
                now=self._now,
            )
            for one in due
        }

    def _advance(self, place: Place, state: DatasetState | None) -> DatasetState | None:
        try:
            after = advance(place, state)
        except AWS_ERRORS as error:
            self._failures.add(place.directory, "could not read its progress; the next run tries again", error)
            return state
        if state is None or after.step is not state.step:
            self._logger.info(
                "%s is %s",
                place.directory,
                after.step,
                extra={"dataset": place.directory, EVENT_FIELD: Event.ACT},
            )
        return after

    def _apply(self, place: Place, before: DatasetState | None, state: DatasetState) -> DatasetState:
        """Send what was written down, and return the state with what came of it."""
        old = () if before is None else before.commands
        commands = [one if one in old else self._send(place, state, one) for one in state.commands]
        state = replace(state, commands=tuple(one for one in commands if one is not None))
        if state.notice is not None and state.claimed == self._now:
            title, text = messages.notification(self._settings, place.directory, state, self._now)
            try:
                publish(self._aws.sns(), self._settings.topic_arn, title, text)
            except AWS_ERRORS as error:
                what = (
                    f"the notification could not be published to {self._settings.topic_arn}, and a later run repeats "
                    "it"
                )
                self._failures.add(place.directory, what, error)
            else:
                state = replace(state, notice=None)
        return state

    def _send(self, place: Place, state: DatasetState, command: Command) -> Command | None:
        try:
            return replace(command, id=place.nodes.send(command, request(place, state, command)))
        except AWS_ERRORS as error:
            what = f"could not send a command to {command.instance}, and a later run sends it to a node"
            self._failures.add(place.directory, what, error)
            # Without an answer it may have been sent.
            return None if _is_refusal(error) else command

    def _write(self, seen: StateItem, states: States) -> StateItem:
        values: Mapping[str, object] = {_DATASETS: {path: encode(state) for path, state in states.items()}}
        return self._table.write(_ITEM, values, seen=seen)

    def _show(self, states: States) -> None:
        found = self._progress(states)
        if not found.datasets:
            return
        emit_progress(self._settings.cluster, found)
        try:
            self._aws.ssm().put_parameter(
                Name=progress_parameter(self._settings.cluster),
                Value=found.to_parameter(),
                Type="String",
                Overwrite=True,
            )
        except AWS_ERRORS as error:
            name = progress_parameter(self._settings.cluster)
            self._failures.add(f"the SSM parameter {name}", "could not be written, and a later run writes it", error)

    def _progress(self, states: States) -> HydrationProgress:
        preloaded = [one.path for one in self._settings.datasets if one.preload]
        named = {directory(self._settings.mount_point, path): states[path] for path in preloaded if path in states}
        return progress(named, self._now)

    def _report(self, states: States) -> dict[str, object]:
        return {"cluster": self._settings.cluster, **encode(self._progress(states))}


def _is_refusal(error: Exception) -> bool:
    """Say whether AWS has surely refused the call."""
    if not isinstance(error, ClientError):
        return False
    return error.response.get("ResponseMetadata", {}).get("HTTPStatusCode", 400) in _BAD_REQUESTS
