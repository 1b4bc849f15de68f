"""A plan charges each part for the hours in which it is billed: by a schedule, from a date on, or always."""

from datetime import date
from decimal import Decimal
from pathlib import Path

import pytest

from cdk_training_cluster.prices import committed_prices
from cdk_training_cluster_cli.money.plan import Assumptions, Plan, make_plan
from cdk_training_cluster_cli.money.plan.shape import shape_of
from cdk_training_cluster_file import read_cluster_file
from examples import PROJECT

_NODES = "instance_types: [p5.48xlarge], count: 2, image: latest"
_RESERVED = "reservation: {end: until_cancelled, on_idle"
FILE = f"""\
name: lab
availability_zone: us-east-1b
schedule: {{windows: [weekdays 08:00-20:00 Europe/Berlin]}}
node_groups:
  - {{name: office, {_NODES}}}
  - {{name: nights, {_NODES}, capacity: {{spot: {{}}}}, schedule: {{windows: [daily 20:00-06:00 UTC], end: idle}}}}
  - {{name: always, {_NODES}, schedule: {{windows: []}}}}
  - {{name: kept, {_NODES}, capacity: {{{_RESERVED}: keep}}}}}}
  - {{name: released, {_NODES}, capacity: {{{_RESERVED}: release}}}}}}
"""


def test_nodes_are_charged_for_the_hours_of_their_schedule(tmp_path: Path) -> None:
    (tmp_path / "lab.yaml").write_text(FILE)
    shape = shape_of(read_cluster_file(tmp_path / "lab.yaml"))
    plan = make_plan(shape, committed_prices(), Assumptions(), today=date(2026, 11, 23))

    hours = {group.name: group.hours_a_month for group in shape.groups}
    assert hours == {"office": 260, "nights": 304, "always": None, "kept": None, "released": 260}
    compute = {line.key.partition(".")[2]: line for line in plan.lines if line.kind == "compute"}
    runs = {name: round(line.run(Decimal(730)) or 0, 2) for name, line in compute.items()}
    month = Decimal("110.08") * 730
    assert (runs["always"], runs["kept"]) == (month, month)
    assert runs["office"] == runs["released"] == Decimal("110.08") * 260
    assert compute["office"].basis == "2 x $55.04; 260 of 730 hours a month, by its schedule"
    assert round(compute["nights"].longer * 730, 6) == Decimal("1.1") * 304
    prices = {option.name: round(option.low or 0, 2) for option in plan.options}
    assert prices["On-Demand"] == Decimal("110.08") * (260 + 304 + 730 + 730 + 260)
    assert prices["Capacity Reservation"] == month * 5


def _plan_of_eks(folder: Path, today: date, hours: int) -> Plan:
    file = folder / "pod.yaml"
    file.write_text(
        f"name: pod\navailability_zone: us-east-1b\nnode_groups: [{{name: workers, {_NODES}}}]\n"
        "orchestrator: {eks: {control_plane_zone: us-east-1a, kubernetes_version: '1.34'}}\n"
    )
    shape = shape_of(read_cluster_file(file))
    return make_plan(shape, committed_prices(), Assumptions(hours=Decimal(hours)), today=today)


@pytest.mark.parametrize(
    ("today", "hours", "run", "basis"),
    [
        (date(2026, 11, 22), 240, None, None),
        (date(2026, 12, 1), 24, None, None),
        (date(2026, 12, 1), 96, "36", "$0.5 per hour; from 2026-12-02 on"),
        (date(2026, 12, 2), 96, "48", "$0.5 per hour"),
    ],
)
def test_extended_support_of_eks_is_charged_from_its_date_on(
    today: date, hours: int, run: str | None, basis: str | None, tmp_path: Path
) -> None:
    lines = {line.key: line for line in _plan_of_eks(tmp_path, today, hours).lines}
    assert lines["orchestrator.eks-control-plane"].run(Decimal(hours)) == Decimal("0.1") * hours
    extended = lines.get("orchestrator.eks-extended-support")
    assert (None if extended is None else extended.run(Decimal(hours))) == (None if run is None else Decimal(run))
    assert (None if extended is None else extended.basis) == basis


def test_batch_runs_nodes_for_jobs_alone_and_buys_none_on_spot() -> None:
    [workers] = shape_of(read_cluster_file(PROJECT / "clusters/batch.yaml")).groups
    assert (workers.takes_spot, workers.runs_for_jobs) == (False, True)
