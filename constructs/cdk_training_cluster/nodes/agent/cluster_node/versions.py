"""The versions of what the nodes of a gang must have alike, compared through the file system that they share.

Each node writes its own; nodes of another image, or with other scripts or settings, differ on purpose, while these
are rolled out, and are left out.
"""

from __future__ import annotations

import hashlib
import json
import os
import time
from collections.abc import Iterator
from pathlib import Path

from . import progress
from .checking import Check, not_checked, verdict
from .machine import version_of_efa
from .node_facts import Facts, paths, read_text, settings
from .programs import ROOT
from .walk import WORKING_DIRECTORY

_LIBRARIES = ("/usr/local/cuda/lib*/libnccl.so.2.*", "/usr/lib/*/libnccl.so.2.*", "/usr/lib64/libnccl.so.2.*")
# A node that has not been verified for a day may be long gone.
_FRESH_SECONDS = 86_400
_KEPT_SECONDS = 30 * 86_400


def versions(driver: str) -> dict[str, str]:
    """Return the versions on this node; what it does not have is left out.

    Args:
        driver: The version of NVIDIA's driver, where that is known.
    """
    nccl = [path for pattern in _LIBRARIES for path in paths(pattern)]
    found = {
        "NVIDIA driver": driver,
        "NCCL": nccl[-1].rpartition(".so.")[2] if nccl else "",
        "EFA installer": version_of_efa(),
        "EFA driver": (read_text("/sys/module/efa/version") or "").strip(),
        "Neuron driver": (read_text("/sys/module/neuron/version") or "").strip(),
    }
    return {name: version for name, version in found.items() if version}


def check_versions(facts: Facts, own: dict[str, str], instance_id: str, image: str) -> Iterator[Check]:
    """Yield whether the nodes of the group have the same versions, and write down those of this node.

    Args:
        facts: What the node is.
        own: The versions on this node.
        instance_id: The node's instance.
        image: The id of its image.
    """
    said = ", ".join(f"{name} {version}" for name, version in own.items())
    if not facts.mount_point or not instance_id or not image:
        yield not_checked("versions", f"{said}; no file system is shared, or the instance or its image is not known")
        return
    root = Path(ROOT + facts.mount_point) / os.fsdecode(WORKING_DIRECTORY)
    # The addresses of the scripts among the settings change with what the scripts do.
    alike = hashlib.sha256(json.dumps(settings(), sort_keys=True).encode()).hexdigest()[:12]
    folder = root / "versions" / facts.cluster / facts.node_group / f"{image}-{alike}"
    try:
        progress.write(folder / f"{instance_id}.json", {"versions": own})
    except OSError as error:
        # With root squash, root may write nowhere.
        yield not_checked("versions", f"{said}; root may not write to {error.filename}: {error.strerror}")
        return
    troubles = []
    for path in sorted(folder.glob("i-*.json")):
        other = progress.read(path)
        age = time.time() - float(other.get("updated", 0))
        if age > _KEPT_SECONDS:
            progress.remove(path)
        if path.stem == instance_id or age > _FRESH_SECONDS:
            continue
        theirs = other.get("versions", {})
        troubles += [
            f"{name} {version}, and {path.stem} of the same image has {theirs[name]}"
            for name, version in own.items()
            if name in theirs and theirs[name] != version
        ]
    yield verdict("versions", troubles[:3], said)
