"""What a node compares its downloads with, and what it does with one that differs."""

import re
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from cdk_training_cluster.nodes.bootstrap.asset import SCRIPTS
from cdk_training_cluster.nodes.bootstrap.downloads import DOWNLOADS, UNVERIFIED
from node_sandbox import UBUNTU, NodeSandbox

MakeNode = Callable[..., NodeSandbox]
KEY = DOWNLOADS["CLOUDWATCH_AGENT_KEY"]
_REPOSITORY = Path(__file__).parents[4]
_PACKAGE = "amazon-cloudwatch-agent.deb"


def _ubuntu(make_node: MakeNode) -> NodeSandbox:
    node = make_node(os_release=UBUNTU)
    node.lacks("amazon-cloudwatch-agent-ctl")
    return node


def test_a_package_that_is_not_signed_by_aws_is_not_installed(make_node: MakeNode) -> None:
    node = _ubuntu(make_node)
    (node.sandbox / "signer").write_text(KEY.replace("9", "8"))
    assert node.bootstrap().returncode == 1
    assert node.state == {
        "state": "failed",
        "step": "agent",
        "message": f"the CloudWatch agent's package is not signed by AWS's key {KEY}",
    }
    assert not [call for call in node.calls if call.startswith("apt-get") and _PACKAGE in call]


def test_an_image_without_gpg_gets_it(make_node: MakeNode) -> None:
    node = _ubuntu(make_node)
    package = node.sandbox / "packages/gnupg"
    package.mkdir()
    (node.sandbox / "bin/gpg").rename(package / "gpg")
    assert node.bootstrap().returncode == 0
    assert any(call.startswith("apt-get") and call.endswith("install -qy gnupg") for call in node.calls)


def test_a_user_script_that_is_not_that_of_the_deployment_is_not_run(make_node: MakeNode) -> None:
    node = make_node()
    setting = node.user_script("pip.sh", "true")
    node.user_script("pip.sh", "touch broken")
    node.change_settings(SCRIPTS_AFTER=[setting])
    assert node.bootstrap().returncode == 1
    address = setting.split()[0]
    assert node.state["message"] == (
        f"{address} is not the file of the deployment: look at who changed the bucket of assets"
    )
    assert not (node.root / "broken").exists()
    # What was not run is fetched again.
    node.user_script("pip.sh", "true")
    assert node.bootstrap().returncode == 0


def test_a_user_script_that_was_not_compared_to_the_end_is_not_run_later(make_node: MakeNode) -> None:
    node = make_node()
    setting = node.user_script("pip.sh", "true")
    node.user_script("pip.sh", "touch broken")
    node.change_settings(SCRIPTS_AFTER=[setting])
    comparison = node.sandbox / "bin/sha256sum"
    comparison.write_text("#!/bin/bash\nkill -9 $PPID\n")
    comparison.chmod(0o755)
    assert node.bootstrap().returncode == 1
    comparison.unlink()
    assert node.bootstrap().returncode == 1
    assert node.state["message"].endswith(
        "is not the file of the deployment: look at who changed the bucket of assets"
    )
    assert not (node.root / "broken").exists()


def _gpg(home: Path, *arguments: str) -> bytes:
    command = ["gpg", "--homedir", str(home), "--batch", "--quiet", "--pinentry-mode", "loopback", "--passphrase", ""]
    return subprocess.run([*command, *arguments], check=True, capture_output=True).stdout


@pytest.mark.skipif(shutil.which("gpg") is None, reason="gpg is not installed; the tests above run a stand-in")
def test_gpg_itself_tells_packages_of_the_key_from_others(make_node: MakeNode, tmp_path: Path) -> None:
    node = _ubuntu(make_node)
    gpg = shutil.which("gpg")
    assert gpg is not None
    (node.sandbox / "bin/gpg").unlink()
    (node.sandbox / "bin/gpg").symlink_to(gpg)
    package = tmp_path / _PACKAGE
    package.write_bytes(b"package")
    fingerprints = {}
    for name in ("aws", "other"):
        home = tmp_path / name
        home.mkdir(mode=0o700)
        _gpg(home, "--quick-gen-key", name, "ed25519", "sign", "never")
        keys = _gpg(home, "--with-colons", "--list-keys").decode()
        fingerprints[name] = next(line.split(":")[9] for line in keys.splitlines() if line.startswith("fpr"))

    def is_signed(signer: str, key: str, content: bytes = b"package") -> bool:
        package.write_bytes(b"package")
        signature = _gpg(tmp_path / signer, "--output", "-", "--detach-sign", str(package))
        package.with_name(f"{_PACKAGE}.sig").write_bytes(signature)
        package.with_name(f"{_PACKAGE}.gpg").write_bytes(_gpg(tmp_path / key, "--export"))
        package.write_bytes(content)
        return node.step(f'-c "source ./lib.sh; is_signed {package} {fingerprints["aws"]}"').returncode == 0

    assert is_signed("aws", "aws")
    assert not is_signed("aws", "aws", content=b"changed")
    assert not is_signed("other", "other")
    assert not is_signed("other", "aws")


def test_every_download_is_pinned_or_documented() -> None:
    text = "".join(path.read_text() for path in SCRIPTS.glob("*.sh"))
    name = re.search(r"^name=(\S+)$", (SCRIPTS / "lustre_efa.sh").read_text(), re.MULTILINE)
    assert name is not None
    addresses = set(re.findall(r'download "([^"]+)"', text.replace("$name", name[1])))
    # What follows each of these compares it with DOWNLOADS.
    verified = {address for address in addresses if address.startswith(("$site/", "$2"))}
    assert addresses - verified == set(UNVERIFIED)
    page = (_REPOSITORY / "docs/security.md").read_text()
    for address, reason in UNVERIFIED.items():
        assert f"{address} | {reason}" in page
    for variable, value in DOWNLOADS.items():
        if variable.endswith(("_AMD64", "_ARM64")):
            assert re.fullmatch(r"(sha256:)?[0-9a-f]{64}", value), variable
    assert not re.search(r"latest|master|main\b", " ".join(DOWNLOADS.values()))
