from pathlib import Path

import pytest

from cluster_job.hangs import FLOOR_SECONDS, Progress, Reading, judge, write_stacks
from cluster_job.readings import EfaCounters, Gpu, hang_reading, read_efa, read_gpus

_PATIENCE = 600.0  # torch's own for NCCL


def _readings(
    *, bytes_a_second: float | None = 0.0, count: int = 41, busy: frozenset[int] = frozenset()
) -> list[Reading]:
    return [
        Reading(
            at=15.0 * number,
            gpus_wait=number not in busy,
            efa_bytes=None if bytes_a_second is None else int(15 * number * bytes_a_second),
        )
        for number in range(count)
    ]


@pytest.mark.parametrize(
    ("silent", "usual", "readings", "patience", "expected"),
    [
        (FLOOR_SECONDS - 1, 1.0, _readings(), _PATIENCE, Progress.STEPS),
        (FLOOR_SECONDS, 1.0, _readings(), _PATIENCE, Progress.HANGS),
        (499.0, 100.0, _readings(), _PATIENCE, Progress.STEPS),
        (500.0, 100.0, _readings(), _PATIENCE, Progress.HANGS),
        # What does not say that it hangs: another explanation, or none at all.
        (900.0, 1.0, _readings(count=40), _PATIENCE, Progress.STALLS),
        (900.0, 1.0, _readings(), 7200.0, Progress.STALLS),
        (900.0, 1.0, _readings(), None, Progress.STALLS),
        (900.0, 1.0, _readings(count=2), 1.0, Progress.STALLS),
        (900.0, 1.0, [], _PATIENCE, Progress.STALLS),
        (900.0, 1.0, _readings(busy=frozenset({20})), _PATIENCE, Progress.STALLS),
        (900.0, 1.0, _readings(busy=frozenset({20}), count=62), _PATIENCE, Progress.HANGS),
        (900.0, 1.0, _readings(bytes_a_second=2e6), _PATIENCE, Progress.STALLS),
        (900.0, 1.0, _readings(bytes_a_second=None), _PATIENCE, Progress.STALLS),
        (900.0, 1.0, _readings(bytes_a_second=-1.0), _PATIENCE, Progress.STALLS),
    ],
)
def test_a_process_hangs_when_its_gpus_wait_longer_than_torch_does_and_nothing_moves(
    silent: float, usual: float, readings: list[Reading], patience: float | None, expected: Progress
) -> None:
    assert judge(silent, usual, readings, patience) is expected


def test_stacks_of_all_threads_are_written(tmp_path: Path) -> None:
    write_stacks(file := tmp_path / "llama" / "stacks.txt", "rank 3 has done no step for 300 s")

    text = file.read_text()
    assert text.startswith("rank 3 has done no step for 300 s\n")
    assert "test_stacks_of_all_threads_are_written" in text


_SMI = (
    "0, GPU-aa, NVIDIA H100 80GB HBM3, 100, 0, 131.27, 700.00, Not Active, Not Active\n"
    "1, GPU-bb, NVIDIA H100 80GB HBM3, 99, 31, 512.00, 700.00, Not Active, Active\n"
    "2, GPU-cc, NVIDIA H100 80GB HBM3, [N/A], [N/A], [N/A], [N/A], Active, Not Active\n"
)


@pytest.mark.parametrize(
    ("visible", "indices"), [("", [0, 1, 2]), ("1,2", [1, 2]), ("GPU-bb", [1]), (" 0 , 2", [0, 2])]
)
def test_the_gpus_of_the_job_are_read(visible: str, indices: list[int]) -> None:
    gpus = read_gpus(lambda _: _SMI, {"CUDA_VISIBLE_DEVICES": visible})

    assert [gpu.index for gpu in gpus] == indices
    assert [gpu.is_throttled for gpu in gpus] == [index > 0 for index in indices]
    assert [gpu.percent for gpu in gpus] == [[100.0, 99.0, None][index] for index in indices]
    assert [gpu.waits for gpu in gpus] == [index == 0 for index in indices]


@pytest.mark.parametrize(
    ("percent", "memory", "power", "waits"),
    [
        (99.0, 5.0, 40.0, True),
        (98.0, 0.0, 20.0, False),
        (100.0, 6.0, 20.0, False),
        (100.0, 0.0, 41.0, False),
        (None, 0.0, 20.0, False),
        (100.0, None, 20.0, False),
        (100.0, 0.0, None, False),
    ],
)
def test_a_gpu_waits_that_is_busy_reads_no_memory_and_stays_cool(
    percent: float | None, memory: float | None, power: float | None, waits: bool
) -> None:
    gpu = Gpu(index=0, name="", percent=percent, is_throttled=False, memory_percent=memory, power_percent=power)
    assert gpu.waits is waits


@pytest.mark.parametrize("said", [None, "", "NVIDIA-SMI has failed\n", "x, GPU-aa, H100, 1, 1, 1, 1, a, b\n"])
def test_gpus_that_cannot_be_read_say_nothing(said: str | None) -> None:
    gpus = read_gpus(lambda _: said, {})

    assert gpus == ()
    assert hang_reading(0.0, gpus, None) == Reading(at=0.0, gpus_wait=False, efa_bytes=None)


def test_the_counters_of_all_adapters_are_added(tmp_path: Path) -> None:
    assert read_efa(tmp_path) is None
    for device in ("rdmap0", "rdmap1"):
        folder = tmp_path / device / "ports" / "1" / "hw_counters"
        folder.mkdir(parents=True)
        for name, value in (("rx_bytes", 10), ("tx_bytes", 100), ("rdma_write_bytes", 1000), ("retrans_bytes", 5)):
            (folder / name).write_text(f"{value}\n")

    found = read_efa(tmp_path)

    assert found == EfaCounters(bytes=2220, sent_bytes=200, retransmitted_bytes=10)
    assert found.retransmitted_since(EfaCounters(bytes=0, sent_bytes=100, retransmitted_bytes=0)) == 0.1
    assert found.retransmitted_since(found) is None
