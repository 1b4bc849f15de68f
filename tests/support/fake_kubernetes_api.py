"""The API server of a Kubernetes cluster with one node: how it answers a client that reads and patches that."""

import json
import re
import ssl
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from ipaddress import ip_address
from pathlib import Path
from typing import Any

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

_LABEL = re.compile(r"(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?")


class FakeKubernetesApi:
    """A node, and how the server answers.

    Attributes:
        node: The Node object; a client's patch gives it a new version.
        renewals: How often the token has been renewed; the old ones are refused.
        status: What it refuses each request with. None: it does not. 0: it does not answer.
        verbs: What it was asked, also where it refused.
        meanwhile: What another client patches between this one's reading and its patch.
        patched: Set when the node was patched.
    """

    def __init__(self, *taints: dict[str, Any], annotations: dict[str, str] | None = None) -> None:
        metadata = {"name": "node-1", "resourceVersion": "1", "labels": {"zone": "a"}}
        self.node: dict[str, Any] = {
            "metadata": {**metadata, **({"annotations": annotations} if annotations else {})},
            "spec": {"taints": [*taints]} if taints else {},
        }
        self.renewals = 0
        self.status: int | None = None
        self.verbs: list[str] = []
        self.meanwhile: dict[str, Any] | None = None
        self.patched = threading.Event()
        self._over = threading.Event()

    @property
    def token(self) -> str:
        return f"token-{self.renewals}"

    @property
    def taints(self) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = self.node["spec"].get("taints", [])
        return found

    @property
    def annotations(self) -> dict[str, str]:
        found: dict[str, str] = self.node["metadata"].get("annotations", {})
        return found

    @contextmanager
    def serving(self, credentials: Path) -> Iterator[tuple[str, int]]:
        """Serve, and yield the address; the folder gets what a pod finds of its service account."""
        key = _write_certificate(credentials / "ca.crt")
        (credentials / "token").write_text(self.token)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(credentials / "ca.crt", key)
        server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        server.socket = context.wrap_socket(server.socket, server_side=True)
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        try:
            yield "127.0.0.1", server.server_port
        finally:
            self._over.set()
            server.shutdown()
            thread.join()
            server.server_close()

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        api = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                self._answer("get", lambda: (200, api.node))

            def do_PATCH(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                assert self.headers["Content-Type"] == "application/merge-patch+json"
                self._answer("patch", lambda: api.patch(body))

            def _answer(self, verb: str, act: Callable[[], tuple[int, object]]) -> None:
                api.verbs.append(verb)
                if api.status == 0:
                    api._over.wait()
                    return
                if self.headers["Authorization"] != f"Bearer {api.token}":
                    status, found = 401, _refusal("Unauthorized")
                elif api.status is not None:
                    status, found = api.status, _refusal("refused")
                elif self.path != f"/api/v1/nodes/{api.node['metadata']['name']}":
                    status, found = 404, _refusal("not found")
                else:
                    status, found = act()
                text = json.dumps(found).encode()
                self.send_response(status)
                self.send_header("Content-Length", str(len(text)))
                self.end_headers()
                self.wfile.write(text)

            def log_message(self, *_: object) -> None:
                pass

        return Handler

    def patch(self, body: dict[str, Any]) -> tuple[int, object]:
        """Patch the node as the API server does: not where it has changed since the version that the patch names."""
        if self.meanwhile is not None:
            other, self.meanwhile = self.meanwhile, None
            self.patch(other)
        named = body["metadata"].get("resourceVersion")
        version = self.node["metadata"]["resourceVersion"]
        if named is not None and named != version:
            return 409, _refusal("the object has been modified; please apply your changes to the latest version")
        new = _merged(self.node, body)
        keys = [(each["key"], each["effect"]) for each in new["spec"].get("taints", [])]
        values = [each.get("value", "") for each in new["spec"].get("taints", [])]
        if len(keys) != len(set(keys)) or not all(_LABEL.fullmatch(each) and len(each) <= 63 for each in values):
            return 422, _refusal("invalid taints")
        new["metadata"]["resourceVersion"] = str(int(version) + 1)
        self.node = new
        self.patched.set()
        return 200, new


def _refusal(message: str) -> object:
    return {"kind": "Status", "status": "Failure", "message": message}


def _merged(old: Any, patch: Any) -> Any:
    """https://www.rfc-editor.org/rfc/rfc7386"""
    if not isinstance(patch, dict):
        return patch
    old = old if isinstance(old, dict) else {}
    both = {**old, **{name: _merged(old.get(name), value) for name, value in patch.items()}}
    return {name: value for name, value in both.items() if value is not None}


def _write_certificate(path: Path) -> Path:
    """Write a certificate that, as the authorities of EKS, has no key identifier; return the file of its key."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "kubernetes")])
    now = datetime.now(UTC)
    certificate = (
        x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number())
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .add_extension(x509.SubjectAlternativeName([x509.IPAddress(ip_address("127.0.0.1"))]), critical=False)
        .sign(key, hashes.SHA256())
    )
    path.write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
    file = path.with_name("server.key")
    kind = serialization.PrivateFormat.PKCS8
    file.write_bytes(key.private_bytes(serialization.Encoding.PEM, kind, serialization.NoEncryption()))
    return file
