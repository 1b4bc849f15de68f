"""What a cluster file says of schedules: read, and refused with its line in one sentence."""

from pathlib import Path

from cdk_training_cluster import ScheduleEnd
from cdk_training_cluster_file import read_cluster_file
from cluster_files import RIGHT, problems

WRONG = """\
schedule:
  windows: [weekdays 08:00-20:00 Europe/Berln, daily 8:00 UTC]
  holidays: [2026-12-25, 2026-13-01]
  end: idel
"""
GROUPS = """\
    schedule: {windows: [mon 08:00-20:00 UTC, daily 09:00-10:00 UTC], warning_minutes: 1}
  - {name: pod, instance_types: [p5.48xlarge], count: 1, image: latest, capacity: {capacity_block: {id: cr-0a1b2c3d}}}
"""


def test_every_setting_is_read(tmp_path: Path) -> None:
    (tmp_path / "cluster.yaml").write_text(
        f"{RIGHT}    schedule: {{windows: []}}\n"
        "schedule:\n  windows: [weekdays 08:00-20:00 UTC]\n  holidays: [2026-12-25]\n  end: idle\n"
        "  warning_minutes: 5\n"
    )
    cluster = read_cluster_file("cluster.yaml", relative_to=tmp_path)

    schedule = cluster.to_guardrails()["schedule"]
    assert schedule is not None
    assert schedule.settings.warning.total_seconds() == 300
    assert (schedule.end, schedule.holidays) == (ScheduleEnd.IDLE, ("2026-12-25",))
    own = cluster.node_groups[0].to_node_group("us-east-1").schedule
    assert own is not None
    assert own.is_off


def test_what_is_wrong_is_said_with_its_place(tmp_path: Path) -> None:
    assert problems(tmp_path, RIGHT + GROUPS + WRONG) == [
        "cluster.yaml:12: node_groups[0].schedule.windows: must not overlap, got mon 08:00-20:00 UTC and daily "
        "09:00-10:00 UTC, both open on Monday 09:00: join them",
        "cluster.yaml:12: node_groups[0].schedule.warning_minutes: must be at least 5, got 1",
        "cluster.yaml:15: schedule.windows[0]: a time zone must be an IANA name, got Europe/Berln: write "
        "Europe/Berlin or Europe/Dublin or Europe/Belfast",
        "cluster.yaml:15: schedule.windows[1]: a window must be days, times and an IANA time zone, such as weekdays "
        "08:00-20:00 Europe/Berlin, or two cron expressions, such as 0 8 * * 1-5 to 0 20 * * 1-5 Europe/Berlin, got "
        "'daily 8:00 UTC'",
        "cluster.yaml:16: schedule.holidays[1]: must be a date such as 2026-12-25, got '2026-13-01'",
        'cluster.yaml:17: schedule.end: must be stop or idle, got "idel"; did you mean idle?',
    ]


def test_a_schedule_of_the_cluster_that_a_block_cannot_have_is_told_where_it_stands(tmp_path: Path) -> None:
    text = f"{RIGHT}{GROUPS.splitlines()[1]}\nschedule: {{windows: [daily 08:00-09:00 UTC]}}\n"

    assert problems(tmp_path, text) == [
        "cluster.yaml:13: schedule: node group 'pod': must be left out for capacity_block, whose nodes run while the "
        "block does, and which is paid for in advance; where the cluster has a schedule, give the group schedule: "
        "{windows: []}"
    ]
