"""Settings that must be there before the first synth starts a Node process, and what tests share.

That is the local AWS, one for each worker, and the cloud assemblies of examples, each made once in a run.
"""

import fcntl
import os
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path

import pytest
from hypothesis import settings

from examples import PROJECT, run_app
from local_aws_scene import aws, nodes, stacks
from sweeps import uncovered

__all__ = ["aws", "nodes", "stacks"]

# The validation costs seconds in every process; the tests of the examples turn it on in processes of their own.
os.environ["CDK_VALIDATION"] = "false"
os.environ["JSII_SILENCE_WARNING_UNTESTED_NODE_VERSION"] = "1"
# Copies of assets are a fifth of a synth's time, and templates are the same without them.
os.environ["CDK_CONTEXT_JSON"] = '{"aws:cdk:disable-asset-staging": true}'

# How long an example takes is no property of what is tested. The examples are the same in every run, so that a run
# says whether a change is sound; `pytest --hypothesis-profile=random` looks for new ones.
settings.register_profile("tests", deadline=None, derandomize=True, max_examples=30)
settings.register_profile("random", deadline=None, max_examples=300)
settings.load_profile("tests")

# A machine without AWS: no credentials, no profile, and no service that answers.
_WITHOUT_AWS = {
    "AWS_ACCESS_KEY_ID": "",
    "AWS_PROFILE": "no-such-profile",
    "AWS_ENDPOINT_URL": "http://localhost:1",
}
Once = Callable[[str, Callable[[Path], None]], Path]


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Refuse a run of all tests with a swept test of which `.ci/run` runs no case."""
    whole = PROJECT / "tests" in map(Path.resolve, map(Path, config.args))
    if whole and (found := uncovered(items, (PROJECT / ".ci/run").read_text())):
        raise pytest.UsageError("\n".join(found))


@pytest.fixture(scope="session")
def once(tmp_path_factory: pytest.TempPathFactory) -> Once:
    """Return what fills a folder of a name once in a run, whichever worker asks first."""
    own = tmp_path_factory.getbasetemp()
    shared = own.parent if "PYTEST_XDIST_WORKER" in os.environ else own

    def made(name: str, fill: Callable[[Path], None]) -> Path:
        folder = shared / name
        with folder.with_suffix(".lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not (folder / "made").exists():
                folder.mkdir()
                fill(folder)
                (folder / "made").touch()
        return folder

    return made


@pytest.fixture(scope="session")
def assembly_of(once: Once) -> Callable[[Path], Path]:
    """Return what makes the cloud assembly of a cluster file without AWS, once for all files with its contents."""

    def made(cluster_file: Path) -> Path:
        def fill(folder: Path) -> None:
            ended = run_app(cluster_file, folder / "out", variables={"PYTHONHASHSEED": "0", **_WITHOUT_AWS})
            assert ended.returncode == 0, ended.stderr

        return once(f"assembly-{sha256(cluster_file.read_bytes()).hexdigest()[:16]}", fill) / "out"

    return made
