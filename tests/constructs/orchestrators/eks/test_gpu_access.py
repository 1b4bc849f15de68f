"""The script that lets containers on nodes of EKS use the GPUs that the device plugin gives them, and no others."""

import itertools
import os
import subprocess
from pathlib import Path

from cdk_training_cluster.orchestrators.eks.node_groups import GPU_ACCESS
from max_seconds import MAX_SECONDS


def _run(tools: Path) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PATH": str(tools)}
    return subprocess.run(
        ["/bin/bash", GPU_ACCESS], env=environment, capture_output=True, text=True, timeout=MAX_SECONDS, check=False
    )


def test_the_container_toolkit_takes_gpus_from_mounts_and_not_from_the_variable(tmp_path: Path) -> None:
    (tmp_path / "nvidia-ctk").write_text(f'#!/bin/bash\nprintf "%s\\n" "$@" > {tmp_path}/calls\n')
    (tmp_path / "nvidia-ctk").chmod(0o755)
    assert _run(tmp_path).returncode == 0
    called = (tmp_path / "calls").read_text().split()
    assert called[called.index("--config-file") + 1] == "/etc/nvidia-container-runtime/config.toml"
    assert "--in-place" in called
    settings = [value for flag, value in itertools.pairwise(called) if flag == "--set"]
    # https://github.com/NVIDIA/nvidia-container-toolkit/blob/v1.20.0/api/config/v1/config.go
    assert settings == [
        "accept-nvidia-visible-devices-envvar-when-unprivileged=false",
        "accept-nvidia-visible-devices-as-volume-mounts=true",
    ]


def test_an_image_without_the_toolkit_fails_the_set_up_with_what_to_do(tmp_path: Path) -> None:
    run = _run(tmp_path)
    assert run.returncode == 1
    assert "install NVIDIA's container toolkit on the image" in run.stderr


def test_a_toolkit_that_refuses_the_settings_fails_the_set_up(tmp_path: Path) -> None:
    (tmp_path / "nvidia-ctk").write_text("#!/bin/bash\nexit 3\n")
    (tmp_path / "nvidia-ctk").chmod(0o755)
    assert _run(tmp_path).returncode == 3
