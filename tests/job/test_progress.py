"""How far processes have trained, as the agent of their node reads it when they are gone."""

import os
import subprocess
import sys
from pathlib import Path

from cluster_job.drain import JOB_FOLDER
from cluster_job.progress import Progress, StepFile

_SCRIPT = """
import os, signal
from cluster_job.progress import StepFile
file = StepFile.of(os.environ)
file.begin(3)
for steps in range(4, 8):
    file.done(steps)
os.kill(os.getpid(), signal.SIGKILL)
"""


def test_the_steps_of_a_process_that_was_killed_are_known(tmp_path: Path) -> None:
    variables = {JOB_FOLDER: str(tmp_path)}
    agent = StepFile.of(variables)
    assert agent.read() is None
    environment = {**os.environ, **variables, "PYTHONPATH": str(Path(__file__).parents[2] / "job")}
    subprocess.run([sys.executable, "-c", _SCRIPT], env=environment, check=False, timeout=60)
    assert agent.read() == Progress(start=3, steps=7)
    agent.forget()
    assert agent.read() is None


def test_without_a_folder_nothing_is_kept(tmp_path: Path) -> None:
    for file in (StepFile.of({}), StepFile(tmp_path / "gone")):
        file.begin(3)
        file.done(4)
        file.forget()
        assert file.read() is None
