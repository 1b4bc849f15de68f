"""Keeps new pods off the node that it runs on while a file drains the node: what the DaemonSet of drained nodes runs.

It sets and removes one taint and one annotation of its own Node, and changes no other. While it cannot read the
node's files or ask the API server, it changes nothing and tries again.
"""

import http.client
import json
import os
import re
import signal
import ssl
import sys
import time
from pathlib import Path
from typing import Any, TypeAlias

_CREDENTIALS = Path("/var/run/secrets/kubernetes.io/serviceaccount")
_LOOK_SECONDS = 5
_MAX_WAIT_SECONDS = 30
# A taint that was removed by hand, or with its Node, comes back after that time; hundreds of nodes ask seldom.
_ASK_SECONDS = 300

Drain: TypeAlias = tuple[str, str] | None
"""The taint's value and why the node is drained; None: it is not."""


def read_drain(folder: Path) -> Drain:
    """Return what drains the node.

    Args:
        folder: Each file in it is a reason, with a sentence in its first line.

    Raises:
        OSError: The folder cannot be read.
    """
    names = sorted(path.name for path in folder.iterdir() if not path.name.startswith("."))
    if not names:
        return None
    # What may be the value of a taint is what may be that of a label.
    # https://kubernetes.io/docs/concepts/overview/working-with-objects/labels/#syntax-and-character-set
    value = re.sub(r"[^A-Za-z0-9_.-]", "-", names[0])[:63].strip("-_.")
    return value or "drained", "; ".join(_sentence(folder / name) for name in names)


def _sentence(file: Path) -> str:
    try:
        lines = file.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:  # it drains all the same
        lines = []
    return lines[0] if lines else file.name


class KubernetesNode:
    """The Node object of this node.

    Args:
        name: Its name.
        key: The key of its taint and annotation.
        address: The host and the port of the API server.
        credentials: The folder with the service account's token and the API server's authority.
        timeout_seconds: How long a request may take.
    """

    def __init__(
        self, name: str, *, key: str, address: tuple[str, int], credentials: Path, timeout_seconds: float = 10
    ) -> None:
        self._name, self._key, self._address = name, key, address
        self._credentials, self._timeout = credentials, timeout_seconds

    def mark(self, drain: Drain) -> bool:
        """Bring taint and annotation to what drains the node, and say whether that changed them.

        Args:
            drain: What drains it.

        Raises:
            OSError: The API server does not answer, or refuses.
        """
        node = self._ask("GET")
        metadata, taints = node["metadata"], node["spec"].get("taints", [])
        value, why = drain or (None, None)
        wanted = [{"key": self._key, "value": value, "effect": "NoSchedule"}] if drain else []
        own = [{name: each.get(name) for name in ("key", "value", "effect")} for each in taints if self._is_own(each)]
        if own == wanted and metadata.get("annotations", {}).get(self._key) == why:
            return False
        others = [each for each in taints if not self._is_own(each)]
        # The list is replaced as a whole. With the version that was read, the API server answers 409 where another
        # client has changed the Node meanwhile.
        # https://github.com/kubernetes/community/blob/main/contributors/devel/sig-architecture/api-conventions.md#concurrency-control-and-consistency
        version = {"resourceVersion": metadata["resourceVersion"], "annotations": {self._key: why}}
        self._ask("PATCH", {"metadata": version, "spec": {"taints": others + wanted}})
        return True

    def _is_own(self, taint: dict[str, Any]) -> bool:
        return bool(taint["key"] == self._key)

    def _ask(self, method: str, patch: object = None) -> dict[str, Any]:
        context = ssl.create_default_context(cafile=str(self._credentials / "ca.crt"))
        # EKS's authorities have no key identifier, which Python demands from 3.13 on.
        # https://github.com/kubernetes-client/python/issues/2394
        context.verify_flags &= ~ssl.VERIFY_X509_STRICT
        # Kubernetes renews the file, and refuses an old token.
        # https://kubernetes.io/docs/concepts/storage/projected-volumes/#serviceaccounttoken
        token = (self._credentials / "token").read_text(encoding="ascii").strip()
        connection = http.client.HTTPSConnection(*self._address, timeout=self._timeout, context=context)
        try:
            connection.request(
                method,
                f"/api/v1/nodes/{self._name}",
                body=None if patch is None else json.dumps(patch),
                headers={"Authorization": f"Bearer {token}", "Content-Type": "application/merge-patch+json"},
            )
            answer = connection.getresponse()
            text = answer.read().decode()
        finally:
            connection.close()
        if answer.status != http.client.OK:
            raise OSError(f"{method} of node {self._name}: {answer.status} {answer.reason}: {text[:300]}")
        found: dict[str, Any] = json.loads(text)
        return found


class Watch:
    """Watches the files that drain the node.

    Args:
        folder: Where they lie.
        node: The Node object.
    """

    def __init__(self, folder: Path, node: KubernetesNode) -> None:
        self._folder, self._node = folder, node
        self._wait = _LOOK_SECONDS
        self._known: object = ...  # not yet known
        self._asked = 0.0

    def look(self, now: float) -> float:
        """Bring the Node to what the files say where that may differ, and return the seconds until the next look.

        Args:
            now: The seconds of a clock that is never set back.
        """
        if not self._folder.exists():
            # The node has just booted. Its verification makes the folder; until then it may be as broken as before.
            return _LOOK_SECONDS
        try:
            drain = read_drain(self._folder)
            if drain != self._known or now - self._asked >= _ASK_SECONDS:
                if self._node.mark(drain):
                    _say(f"The node is tainted: {drain[1]}" if drain else "The node is no longer drained")
                self._known, self._asked = drain, now
        except (OSError, http.client.HTTPException, ValueError) as error:
            self._wait = min(2 * self._wait, _MAX_WAIT_SECONDS)
            _say(f"The node's taint stays as it is for {self._wait} seconds: {error}")
        else:
            self._wait = _LOOK_SECONDS
        return self._wait


def _say(sentence: str) -> None:
    print(sentence, flush=True)  # noqa: T201


def main(folder: str, key: str) -> None:
    """Watch until Kubernetes ends the pod, which leaves the taint as it is.

    Args:
        folder: Where the files lie that drain the node.
        key: The key of the taint and the annotation.
    """
    # The first process of a container gets no signal without a handler.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit())
    address = os.environ["KUBERNETES_SERVICE_HOST"], int(os.environ["KUBERNETES_SERVICE_PORT"])
    node = KubernetesNode(os.environ["NODE_NAME"], key=key, address=address, credentials=_CREDENTIALS)
    watch = Watch(Path(folder), node)
    while True:
        time.sleep(watch.look(time.monotonic()))


if __name__ == "__main__":
    main(*sys.argv[1:])
