"""The versions of what the nodes of a gang must have alike, compared through the file system that they share.

Each node writes its own; nodes of another image, or with other scripts or settings, differ on purpose, while these
are rolled out, and are left out.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
from collections.abc import Iterator

from cluster_contract.texts import printable

from .checking import Check, not_checked, verdict
from .machine import version_of_efa
from .node_facts import Facts, paths, read_text, settings
from .programs import ROOT, ask, inside
from .walk import WORKING_DIRECTORY

_LIBRARIES = ("/usr/local/cuda/lib*/libnccl.so.2.*", "/usr/lib/*/libnccl.so.2.*", "/usr/lib64/libnccl.so.2.*")
_SECONDS = 30
# A program of its own, which can be left where the file system hangs. It takes the name of a node and what that node
# writes. It prints what nodes wrote there within a day: those that wrote earlier may be long gone. Another node may
# remove the same files, and pods may write there, too: no link is followed.
_WRITE_AND_READ = """
set -e
printf '%s\\n' "$2" | dd of=".$1.$$" conv=excl status=none
mv -T ".$1.$$" "$1.json"
find . -mtime +30 -type f -delete 2>/dev/null || true
find . -mtime -1 -type f -name '*.json' -exec cat {} + 2>/dev/null | head -c 1000000
"""


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
    # The addresses of the scripts among the settings change with what the scripts do.
    alike = hashlib.sha256(json.dumps(settings(), sort_keys=True).encode()).hexdigest()[:12]
    root = f"{os.fsdecode(WORKING_DIRECTORY)}/versions"
    folder = f"{root}/{facts.cluster}/{facts.node_group}/{image}-{alike}"
    content = json.dumps({"instance_id": instance_id, "versions": own})
    program = ("sh", "-c", _WRITE_AND_READ, "sh", instance_id, content)
    answer = ask(inside(ROOT + facts.mount_point, folder, *program), _SECONDS)
    if not answer.succeeded:
        # With root squash, root may write nowhere.
        yield not_checked("versions", f"{said}; {answer.trouble}")
        return
    troubles = []
    for other, theirs in sorted(_read(answer.text).items()):
        troubles += [
            f"{name} {version}, and {printable(other)} of the same image has {printable(theirs[name])}"
            for name, version in own.items()
            if name in theirs and theirs[name] != version
        ]
    yield verdict("versions", troubles[:3], said)


def _read(text: str) -> dict[str, dict[str, str]]:
    """Return the versions of each node; a line that no node wrote is left out."""
    found = {}
    for line in text.splitlines():
        with contextlib.suppress(ValueError, RecursionError, TypeError, KeyError, AttributeError):
            node = json.loads(line)
            known = {name: str(version) for name, version in node["versions"].items()}
            found[str(node["instance_id"])] = known
    return found
