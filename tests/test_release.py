"""The bills of materials of a release: the same from any folder, with the hash of each file that a user gets."""

import copy
import hashlib
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from scripts.make_release import build, finished

from examples import PROJECT


def _bill(wheel: Path) -> dict[str, Any]:
    """Return what cyclonedx-py says of a wheel that was installed from a folder, and of a package from an index."""
    site = {
        "comment": "from packaging metadata Project-URL: Homepage",
        "type": "website",
        "url": "https://example.com",
    }
    own = {"comment": "PackageSource: Archive", "type": "distribution", "url": wheel.as_uri()}
    return {
        "components": [
            {"name": "cdk_training_cluster.job", "version": "0.1.0", "externalReferences": [own]},
            {"name": "other", "version": "1.0", "externalReferences": [site]},
        ]
    }


def _report(*entries: tuple[str, str]) -> dict[str, Any]:
    return {
        "install": [
            {"metadata": {"name": name}, "download_info": {"archive_info": {"hashes": {"sha256": digest}}}}
            for name, digest in entries
        ]
    }


def test_a_bill_is_the_same_from_two_folders_and_names_the_hash_of_each_file() -> None:
    report = _report(("cdk-training-cluster-job", "a" * 64), ("Other", "b" * 64))
    first, second = (finished(_bill(Path(place)), copy.deepcopy(report)) for place in ("/one/it.whl", "/two/it.whl"))
    assert json.dumps(first) == json.dumps(second)
    assert "file:" not in json.dumps(first)
    assert [one["hashes"] for one in first["components"]] == [
        [{"alg": "SHA-256", "content": "a" * 64}],
        [{"alg": "SHA-256", "content": "b" * 64}],
    ]
    assert first["components"][1]["externalReferences"][0]["url"] == "https://example.com"


def test_a_component_whose_file_has_no_hash_ends_the_release() -> None:
    with pytest.raises(SystemExit, match="pip names no hash of the file of other"):
        finished(_bill(Path("/it.whl")), _report(("cdk-training-cluster-job", "a" * 64)))


def test_pip_reports_the_hash_of_the_file_that_it_installs(tmp_path: Path) -> None:
    (wheel,) = (file for file in build(PROJECT / "job", tmp_path) if file.suffix == ".whl")
    asked = [sys.executable, "-m", "pip", "install", "--quiet", "--dry-run", "--ignore-installed", "--no-index"]
    ended = subprocess.run([*asked, "--no-deps", "--report", "-", str(wheel)], capture_output=True, check=True)
    (entry,) = json.loads(ended.stdout)["install"]
    name = entry["metadata"]["name"]
    bill = finished({"components": [{"name": name}]}, {"install": [entry]})
    assert bill["components"][0]["hashes"][0]["content"] == hashlib.sha256(wheel.read_bytes()).hexdigest()
