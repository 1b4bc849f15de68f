"""When a run begins anew, what it waits for, and when it gives up."""

from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta

import pytest

from cluster_common.actions import Action
from cluster_contract.hydration import HydratedDataset, HydrationStep, parse_progress
from hydration_scene import DATA, START, HydrationScene

_DONE, _FAILED = HydrationStep.DONE, HydrationStep.FAILED


def _to_another_file_system(scene: HydrationScene) -> None:
    scene.file_system = scene.lustre.file_system = "fs-0fedcba9876543210"
    scene.lustre.links.clear()
    scene.lustre.add_link("/data", AssociationId="dra-new")


def _to_another_link(scene: HydrationScene) -> None:
    scene.lustre.add_link("/data", AssociationId="dra-new")


def _away_and_back(scene: HydrationScene) -> None:
    known, scene.datasets = scene.datasets, []
    scene.tick(2)
    scene.datasets = known


@pytest.mark.parametrize("changes", [_to_another_file_system, _to_another_link, _away_and_back])
def test_a_data_set_is_hydrated_only_on_the_file_system_and_through_the_link_of_its_run(
    changes: Callable[[HydrationScene], None],
) -> None:
    scene = HydrationScene()
    scene.until(_DONE)
    scene.nodes.files[DATA].released = set(range(100))
    changes(scene)
    scene.tick(75)
    assert (scene.steps, scene.nodes.files[DATA].released) == ({"/data": _DONE}, set())
    assert len(scene.messages) == 2


@pytest.mark.parametrize("age", [timedelta(days=30), timedelta(minutes=31)])
def test_what_fsx_lists_no_import_of_waits_for_none_that_ended_long_ago(age: timedelta) -> None:
    scene = HydrationScene(link=False)
    scene.lustre.add_link("/data", imports="", CreationTime=scene.now - age)
    scene.tick(6)
    assert scene.nodes.sent
    assert len(scene.lustre.tasks) == (age < timedelta(days=14))


def test_an_ordered_run_begins_at_once_although_fsx_has_forgotten_the_import() -> None:
    scene = HydrationScene()
    scene.until(_DONE)
    scene.now += timedelta(days=20)
    scene.lustre.tasks.clear()
    scene.nodes.files[DATA].released = {1}
    scene.run(Action.RUN)
    scene.tick()
    assert scene.nodes.sent[-1].request["action"] == "restore"
    assert scene.lustre.tasks == []


def test_a_data_set_that_waits_for_its_turn_does_not_fail() -> None:
    scene = HydrationScene(3_000, 1, *(HydratedDataset(path=f"/{name}", preload=True) for name in "abc"))
    scene.tick(1000)
    assert set(scene.steps.values()) == {_DONE}


def _add_objects(scene: HydrationScene, hours: int) -> None:
    """Restore one file each hour, and add another object in each."""
    files = scene.nodes.files[DATA]
    files.speed = 1
    for _ in range(hours):
        scene.now += timedelta(minutes=59)
        files.released.add(files.count)
        files.count += 1
        scene.tick()


def test_objects_that_are_added_without_end_keep_no_node_for_more_than_two_days() -> None:
    scene = HydrationScene(nodes=1)
    _add_objects(scene, 47)
    now = scene.now
    assert scene.steps == {"/data": HydrationStep.RESTORING}
    _add_objects(scene, 4)
    assert (scene.steps, scene.progress().restored_files > 40) == ({"/data": _FAILED}, True)
    ((title, text),) = scene.messages
    assert title == "pod: /fsx/data is not hydrated"
    assert text.startswith("Nodes have worked at /fsx/data for more than 48 hours, ")
    _add_objects(scene, 30)
    assert (len(scene.messages), scene.errors) == (1, [])
    found = parse_progress(scene.nodes.parameter)
    assert found is not None
    assert now < found.time
    assert found.restored_by_nodes(scene.now) == ()


def test_time_without_nodes_does_not_count_as_work() -> None:
    scene = HydrationScene(nodes=1)
    _add_objects(scene, 40)
    scene.nodes.nodes.clear()
    for _ in range(100):
        scene.now += timedelta(minutes=59)
        scene.tick()
    scene.nodes.add_nodes(1)
    scene.nodes.files[DATA].speed = 1_000
    assert scene.until(_DONE).restored_files == 140


def test_500_tib_may_take_two_weeks_and_what_is_added_to_it_no_longer() -> None:
    scene = HydrationScene(nodes=1)
    scene.nodes.files[DATA].mebibytes = 5 * 1024**2  # 100 files of 5 TiB.
    _add_objects(scene, 14 * 24)
    assert scene.steps == {"/data": HydrationStep.RESTORING}
    _add_objects(scene, 48)
    assert scene.steps == {"/data": _FAILED}


def test_a_large_file_that_lustre_copies_has_a_day_and_not_two_hours() -> None:
    scene = HydrationScene(1, 1)
    scene.nodes.files[DATA].speed, scene.nodes.files[DATA].copying = 0, True
    scene.tick(22 * 60)
    assert scene.steps == {"/data": HydrationStep.RESTORING}
    assert "for 1440 minutes without restoring" in (scene.until(_FAILED, within=200).reason or "")


@pytest.mark.parametrize("fate", ["hang", "3", "Cancelled", "lost", "throttled"])
def test_jobs_are_told_of_a_failure_again_until_a_node_confirms_it(fate: str) -> None:
    scene = HydrationScene()
    scene.nodes.files[DATA].broken = {4}

    def meet(operation: str) -> None:
        if operation == "SendCommand" and scene.steps.get("/data") is _FAILED:
            scene.nodes.on_call = lambda _: None
            if fate == "throttled":
                scene.nodes.fail_next("SendCommand", "ThrottlingException")
            else:
                scene.nodes.fates.append(fate)

    scene.nodes.on_call = meet
    scene.until(_FAILED)
    scene.tick(20)
    told = [one for one in scene.nodes.sent if one.request["action"] == "fail"]
    assert told
    assert told[-1].answer is not None
    before = len(scene.calls)
    scene.tick(10)
    assert len(scene.calls) == before + 10


def test_a_selection_without_files_fails_and_an_empty_bucket_does_not() -> None:
    scene = HydrationScene(0, 1)
    scene.until(_DONE)
    assert "no file: if s3://corpus/data/ should hold objects" in scene.messages[0][1]
    scene.datasets = [replace(scene.datasets[0], patterns=("train/*.bni",), max_gib=5)]
    reason = scene.until(_FAILED).reason or ""
    assert "preload selects no file of /fsx/data: patterns train/*.bni, at most 5 GiB" in reason


def test_many_files_that_fail_alone_end_a_run_early_and_a_few_are_tried_by_the_last_look() -> None:
    scene = HydrationScene(60_000, 1)
    files = scene.nodes.files[DATA]
    files.broken, files.gives_up = set(range(60_000)), 1_200
    assert "1,200 of 60,000 files could not be restored" in (scene.until(_FAILED, within=5).reason or "")
    scene = HydrationScene()
    scene.nodes.files[DATA].broken = {4}
    scene.nodes.files[DATA].mends = True
    assert scene.until(_DONE).restored_files == 100


def test_what_has_come_since_counts_in_the_end() -> None:
    scene = HydrationScene()
    while "finish" not in {one.request["action"] for one in scene.nodes.sent}:
        scene.tick()
    scene.nodes.files[DATA].count += 10
    assert scene.until(_DONE).files == 110
    assert scene.messages[0][1].startswith("All 110 selected files")


def test_the_parameter_is_written_while_nothing_changes_and_once_an_hour_when_all_is_done() -> None:
    scene = HydrationScene()
    scene.lustre.tasks[0]["Lifecycle"] = "EXECUTING"
    scene.lustre.settle = lambda: None  # type: ignore[method-assign]
    scene.tick(20)
    assert scene.written == scene.now
    scene.lustre.tasks[0]["Lifecycle"] = "SUCCEEDED"
    scene.until(_DONE)
    scene.nodes.parameter = "{}"
    scene.tick(61)
    assert scene.progress().step is _DONE


def test_an_import_that_another_task_keeps_from_beginning_is_told_of_and_begins_after_it() -> None:
    scene = HydrationScene()
    scene.lustre.tasks[0]["Lifecycle"] = "CANCELED"
    scene.lustre.tasks.append({**scene.lustre.tasks[0], "Lifecycle": "EXECUTING", "link": "dra-other"})
    settle, scene.lustre.settle = scene.lustre.settle, lambda: None  # type: ignore[method-assign]
    scene.tick(8 * 60)
    ((_, text),) = scene.messages
    assert "another data repository task of the file system runs" in text
    assert "When that is mended, hydration goes on by itself" in text
    scene.lustre.tasks[-1]["Lifecycle"] = "SUCCEEDED"
    scene.lustre.settle = settle  # type: ignore[method-assign]
    assert scene.until(_DONE).reason is None


def test_an_order_begins_anew_what_has_failed_and_leaves_the_others_ready() -> None:
    scene = HydrationScene(60, 2, *(HydratedDataset(path=f"/{name}", preload=True) for name in "ab"))
    scene.nodes.files["/fsx/b"].broken = {1}
    scene.until(_FAILED, "/b")
    scene.tick(5)
    scene.nodes.files["/fsx/b"].broken = set()
    sent = len(scene.nodes.sent)
    scene.run(Action.RUN)
    scene.until(_DONE, "/b")
    assert {one.request["directory"] for one in scene.nodes.sent[sent:]} == {"/fsx/b"}


@pytest.mark.parametrize(("fates", "asked"), [([], 1), (["hang"], 2), (["2"], 1)])
def test_a_node_takes_old_markers_away_while_names_are_still_imported(fates: list[str], asked: int) -> None:
    scene = HydrationScene(nodes=1)
    scene.lustre.tasks[0]["Lifecycle"] = "EXECUTING"
    settle, scene.lustre.settle = scene.lustre.settle, lambda: None  # type: ignore[method-assign]
    scene.nodes.fates = fates
    scene.tick(20)
    assert [one.request["action"] for one in scene.nodes.sent] == ["begin"] * asked
    scene.lustre.settle = settle  # type: ignore[method-assign]
    scene.until(_DONE)


@pytest.mark.parametrize("code", ["3", "127"])
def test_nodes_that_cannot_restore_fail_a_data_set_until_one_comes_that_can(code: str) -> None:
    scene = HydrationScene(nodes=1)
    scene.nodes.fates = [code] * 1000
    scene.until(_FAILED, within=80)
    scene.tick(30)
    assert scene.steps == {"/data": _FAILED}
    scene.nodes.fates = []
    scene.nodes.add_nodes(1)
    assert scene.until(_DONE, within=20).reason is None
    assert ["goes on by itself" in text for _, text in scene.messages] == [True, False]


def test_instances_of_another_owner_with_the_tag_of_the_cluster_get_no_command_and_keep_none_from_its_nodes() -> None:
    scene = HydrationScene(nodes=0)
    scene.nodes.add_foreign(120)  # More than Systems Manager is asked about in one request.
    scene.tick(5)
    assert (scene.steps, scene.nodes.sent) == ({"/data": HydrationStep.WAITING}, [])
    scene.nodes.add_nodes(2)
    scene.until(_DONE)
    assert {one.instance for one in scene.nodes.sent} == set(scene.nodes.nodes) - scene.nodes.foreign


def test_a_node_that_loses_the_security_group_of_the_cluster_ends_no_run() -> None:
    scene = HydrationScene()
    scene.nodes.files[DATA].seconds = 150
    scene.tick(2)
    lost = scene.nodes.live[0].instance
    scene.nodes.foreign.add(lost)
    scene.until(_DONE)
    assert {one.instance for one in scene.nodes.sent if one.sent > START + timedelta(minutes=2)} == (
        set(scene.nodes.nodes) - {lost}
    )


def test_files_that_do_not_fit_the_part_of_one_node_are_restored_by_one_alone() -> None:
    scene = HydrationScene(nodes=8)
    scene.nodes.files[DATA].space = 100
    scene.until(_DONE)
    assert scene.nodes.files[DATA].released == set()
    assert {one.request["shards"] for one in scene.nodes.sent} == {8, 1}


def test_a_data_set_that_does_not_fit_is_requested_no_more() -> None:
    scene = HydrationScene(nodes=8)
    scene.nodes.files[DATA].space = 95
    scene.until(_FAILED)
    scene.tick(200)
    assert [one.request["action"] for one in scene.nodes.sent][-2:] == ["restore", "fail"]
    assert "preload_max_gib" in scene.nodes.sent[-1].request["reason"]
    assert len(scene.messages) == 1
