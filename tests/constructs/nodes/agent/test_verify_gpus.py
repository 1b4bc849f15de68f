"""`cluster-node verify` and the node's GPUs: what the driver says of them, and the tests that it makes."""

from pathlib import Path

import pytest

from verified_node import ALL_REDUCE, VerifiedNode

FAILED, OTHER_HOST = 1, 3


@pytest.fixture
def node(tmp_path: Path) -> VerifiedNode:
    return VerifiedNode(tmp_path)


@pytest.mark.parametrize(
    ("state", "status", "sentence"),
    [
        ({}, 0, "ok gpu_test"),
        ({"NVML_GPUS": "7"}, OTHER_HOST, "gpu_count: the driver lists 7 GPUs, and p5.48xlarge has 8; at least 8"),
        ({"NVML_LOST": "3"}, OTHER_HOST, "and p5.48xlarge has 8: GPU 3 does not answer: GPU is lost"),
        ({"NVML_DEAD": "1"}, FAILED, "gpu_driver: NVIDIA's driver does not answer: Driver Not Loaded"),
        ({"NVML_REMAP_FAILED": "2"}, OTHER_HOST, "remap_failed: GPU 2 could not remap a row of its memory"),
        (
            {"NVML_REMAP_PENDING": "2"},
            0,
            "-- remap_pending: GPU 2 has rows of memory to remap at its next reset (the node",
        ),
        ({"NVML_LINKS": "17"}, OTHER_HOST, "nvlink_down: GPU 0 has 17 active NVLinks of 18; at least 18"),
        (
            {"NVML_ECC": "5"},
            0,
            "-- ecc_uncorrectable: GPU 5 has 2 uncorrected ECC errors since its driver was loaded",
        ),
        ({"NVML_NO_LINKS": "1"}, 0, "ok nvlink_down: not checked: the driver does not say"),
        (
            {"NVML_MIG_UNSAID": "999", "NVML_LINKS": "17"},
            0,
            "ok nvlink_down: not checked: the driver does not say of GPU 0",
        ),
        ({"NVML_MIG_UNSAID": "3", "NVML_LINKS": "17"}, OTHER_HOST, "nvlink_down: GPU 0 has 17 active NVLinks of 18"),
        ({"NVML_MIG_UNSAID": "999"}, 0, "ok nvlink_down: 18 on each GPU"),
        (
            {"NVML_MIG_UNSAID": "999"},
            0,
            "ok gpu_test: not checked: the driver does not say whether the GPUs are in MIG mode",
        ),
        ({"NVML_MIG": "1"}, 0, "ok gpu_test: not checked: the GPUs are in MIG mode"),
        ({"NVML_MIG": "1", "NVML_LINKS": "0"}, 0, "ok nvlink_down: not checked: the GPUs are in MIG mode"),
        ({"NVML_SRAM": "4"}, OTHER_HOST, "sram_threshold: GPU 4 has had more uncorrectable errors of its SRAM than"),
        *(
            ({"NVML_RECOVERY": str(code)}, OTHER_HOST, f"recovery_action: GPU 0 asks for {action}")
            for code, action in (
                (1, "a reset"),
                (2, "a reboot"),
                (3, "the end of traffic between GPUs"),
                (6, "a reset of its bus"),
                (7, "a reboot"),
            )
        ),
        # The fourth is asked for rows to remap too, with which jobs may start.
        ({"NVML_RECOVERY": "0"}, 0, "ok recovery_action: none on 8 GPUs"),
        ({"NVML_RECOVERY": "4", "NVML_REMAP_PENDING": "0"}, 0, "ok recovery_action: none on 8 GPUs"),
        ({"NVML_RECOVERY": "4", "NVML_REMAP_PENDING": "1"}, OTHER_HOST, "recovery_action: GPU 0 asks for a reset"),
        # An IMEX domain spans nodes: that a reboot of one ends it, NVIDIA does not say. Later values are not known.
        *(
            (state, 0, "ok recovery_action: not checked: the driver does not say of GPU 0")
            for state in ({"NVML_RECOVERY": "5"}, {"NVML_RECOVERY": "8"})
        ),
        ({"NVML_NO_RECOVERY": "1"}, 0, "ok recovery_action: not checked: the driver does not say"),
        ({"NVML_FABRIC": "3"}, 0, "ok fabric_state: none on 8 GPUs"),
        ({"NVML_FABRIC": "0"}, 0, "ok fabric_state: not checked: the driver does not say of GPU 0"),
        ({"NVML_FABRIC": "2", "NVML_MIG": "1"}, 0, "ok fabric_state: not checked: the GPUs are in MIG mode"),
        (
            {"NVML_FABRIC": "3", "NVML_FABRIC_STATUS": "999"},
            OTHER_HOST,
            "fabric_state: GPU 0 is not registered with the fabric of NVSwitch: error 999",
        ),
    ],
)
def test_nvidia_ml_py_says_what_the_gpus_have(
    node: VerifiedNode, state: dict[str, str], status: int, sentence: str
) -> None:
    done = node.verify(**state)
    assert sentence in done.stdout
    assert done.returncode == status


@pytest.mark.parametrize(
    ("manager", "fabric", "status", "sentence"),
    [
        ("active", ("2", "2"), 0, "ok fabric_state: none on 8 GPUs"),
        ("active", ("1", "99"), OTHER_HOST, "GPU 0 is not registered with the fabric of NVSwitch: not started"),
        ("active", ("2", "99"), OTHER_HOST, "GPU 0 is not registered with the fabric of NVSwitch: in progress"),
        # Another instance of the image would not have it either.
        ("inactive", ("2", "99"), FAILED, "ok fabric_state: not checked: nvidia-fabricmanager.service is inactive"),
    ],
)
def test_gpus_have_a_minute_to_register_with_nvswitch(
    node: VerifiedNode, manager: str, fabric: tuple[str, str], status: int, sentence: str
) -> None:
    node.command("systemctl", f"case $1 in is-active) echo {manager} ;; show) echo infinity ;; esac")
    done = node.verify(
        NVML_FABRIC=fabric[0],
        NVML_FABRIC_READINGS=fabric[1],
        NVML_COUNTED=str(node.root / "counted"),
        BOOT_SECONDS="1.5",
    )
    assert (done.returncode, sentence in done.stdout) == (status, True), done.stdout


def test_no_link_is_blamed_without_the_fabric_manager_of_the_image(node: VerifiedNode) -> None:
    node.command("systemctl", "case $1 in is-active) echo inactive ;; show) echo infinity ;; esac")
    done = node.verify(NVML_LINKS="0")
    assert done.stdout.splitlines()[-1] == "fabric_manager: nvidia-fabricmanager.service is inactive"
    assert (done.returncode, "ok nvlink_down: not checked: nvidia-fabricmanager" in done.stdout) == (FAILED, True)


def test_links_are_read_when_the_fabric_manager_has_started(node: VerifiedNode) -> None:
    node.command(
        "systemctl",
        """
case $1 in
  is-active)
    echo . >>"$ROOT/asked"
    if (($(wc -l <"$ROOT/asked") < 2)); then echo activating; else touch "$ROOT/started"; echo active; fi
    ;;
  show) echo infinity ;;
esac
""",
    )
    done = node.verify(NVML_LINKS_AFTER=str(node.root / "started"))
    assert (done.returncode, "ok nvlink_down: 18 on each GPU" in done.stdout) == (0, True), done.stdout


_JOB = 'mkdir -p "$ROOT/proc/77/fd"; echo python >"$ROOT/proc/77/comm"; ln -s /dev/nvidia-uvm "$ROOT/proc/77/fd/3"'


@pytest.mark.parametrize(
    ("clock", "test", "said"),
    [
        # It began after the GPUs were read.
        (_JOB, "", "not checked: a job uses the node"),
        ("", _JOB, "not checked: a job began to use the node meanwhile"),
    ],
)
def test_no_gpu_is_blamed_for_a_test_beside_a_job(node: VerifiedNode, clock: str, test: str, said: str) -> None:
    node.write("dev/nvidia0")
    node.command("timedatectl", f"{clock}\necho yes")
    node.command(ALL_REDUCE, f"{test}\necho 'unhandled cuda error, NVLink'; exit 3")
    done = node.verify()
    assert (done.returncode, f"ok gpu_test: {said}\n" in done.stdout) == (0, True)


@pytest.mark.parametrize(
    ("listed", "status", "said"),
    [
        ("printf '  MIG 1g.10gb     Device  %d: (UUID: MIG-%d)\\n' {1..16}", 0, "ok gpu_partitions: 8 of 1g.10gb"),
        ("echo 'GPU 0: NVIDIA H100 80GB HBM3 (UUID: GPU-0)'", FAILED, "the GPUs have 0 partitions 1g.10gb, and the"),
        ("exit 9", FAILED, "gpu_partitions: nvidia-smi ended with exit status 9"),
    ],
)
def test_a_divided_gpu_has_its_partitions(node: VerifiedNode, listed: str, status: int, said: str) -> None:
    node.write("opt/cdk-training-cluster/slurm/settings", "SLURM_BIN='/usr/bin'\nMIG_PROFILES='1g.10gb'\n")
    node.command("nvidia-smi", listed)
    done = node.verify(NVML_MIG="1")
    assert (done.returncode, said in done.stdout) == (status, True)


@pytest.mark.parametrize(
    ("said", "status", "sentence"),
    [
        *(
            (said, FAILED, "gpu_test_error: ")
            for said in (
                "Test CUDA failure common.cu:891 'unhandled cuda error'",
                "CUDA failure 'system not yet initialized'",
                "CUDA failure 'unknown error'",
                "Test NCCL failure 'unhandled system error'",
                "CUDA failure 'CUDA-capable device(s) is/are busy or unavailable'",
                "no CUDA-capable device is detected",
                "initialization error",
            )
        ),
        ("CUDA failure 'uncorrectable NVLink error detected'", OTHER_HOST, "gpu_test: "),
        # The image is to blame, and no GPU was used.
        *(
            (said, 0, "ok gpu_test: not checked: ")
            for said in (
                "error while loading shared libraries: libnccl.so.2: cannot open shared object file",
                "symbol lookup error: undefined symbol: ncclCommSplit",
                "/lib/libc.so.6: version `GLIBC_2.38' not found",
                "CUDA failure 'CUDA driver version is insufficient for CUDA runtime version'",
                "CUDA failure 'no kernel image is available for execution on the device'",
                "CUDA failure 'the provided PTX was compiled with an unsupported toolchain.'",
            )
        ),
    ],
)
def test_a_test_that_ends_with_an_error_passes_only_where_the_image_is_to_blame(
    node: VerifiedNode, said: str, status: int, sentence: str
) -> None:
    node.write("said", f"{said}\n")
    node.command(ALL_REDUCE, 'cat "$ROOT/said"; exit 2')
    done = node.verify()
    assert (done.returncode, sentence in done.stdout) == (status, True), done.stdout
    assert (node.root / "run/cdk-training-cluster/drain/verify").exists() is (status != 0)


def test_a_test_that_a_signal_ends_needs_an_operator_and_one_that_cannot_be_run_says_so(node: VerifiedNode) -> None:
    node.command(ALL_REDUCE, "kill -SEGV $$")
    done = node.verify()
    assert done.returncode == FAILED
    assert done.stdout.splitlines()[-1].startswith("gpu_test_error: ")
    (node.root / ALL_REDUCE[1:]).chmod(0o644)
    done = node.verify()
    assert (done.returncode, "all_reduce_perf cannot be run: Permission denied" in done.stdout) == (0, True)


def test_the_test_loads_the_libraries_of_its_own_cuda_first(node: VerifiedNode) -> None:
    node.command(ALL_REDUCE, 'echo "$LD_LIBRARY_PATH" >"$ROOT/searched"')
    node.verify()
    cuda = "/usr/local/cuda-12.9"
    assert (node.root / "searched").read_text().startswith(f"{cuda}/efa/lib:{cuda}/lib:{cuda}/lib64:/opt/amazon/")
