"""Ubuntu's own updates: none while a node is set up, and none that restarts a service under a job."""

import shutil
import subprocess
from collections.abc import Callable

import pytest

from node_sandbox import UBUNTU, UPDATE_TIMERS, NodeSandbox

MakeNode = Callable[..., NodeSandbox]

TIMERS = " ".join(UPDATE_TIMERS)
NEEDRESTART = "etc/needrestart/conf.d/90-cdk-training-cluster.conf"


def _of_updates(node: NodeSandbox) -> list[str]:
    return [call for call in node.calls if "apt-daily" in call and "is-enabled" not in call]


def test_nothing_is_installed_while_the_image_s_own_updates_run(make_node: MakeNode) -> None:
    node = make_node(os_release=UBUNTU).bare()
    (node.sandbox / "updates").write_text("activating\ndeactivating\n")
    assert node.bootstrap().returncode == 0
    of_updates = _of_updates(node)
    asked = "systemctl is-active apt-daily.service apt-daily-upgrade.service"
    assert of_updates == [f"systemctl stop {TIMERS}", *[asked] * 3, f"systemctl start {TIMERS}"]
    installs = [number for number, call in enumerate(node.calls) if call.startswith(("apt-get", "apt-mark"))]
    assert node.calls.index(of_updates[0]) < min(installs) <= max(installs) < node.calls.index(of_updates[-1])


def test_updates_that_do_not_end_end_the_set_up(make_node: MakeNode) -> None:
    node = make_node(os_release=UBUNTU)
    (node.sandbox / "updates").write_text("activating\n" * 20)
    result = node.step("updates.sh pause")
    assert result.returncode == 1
    assert (
        "the updates that the image starts at boot do not end: see journalctl -u apt-daily-upgrade" in result.stderr
    )


def test_a_system_without_updates_at_boot_is_left_alone(make_node: MakeNode) -> None:
    node = make_node()
    assert node.step("updates.sh pause").returncode == node.step("updates.sh resume").returncode == 0
    assert not _of_updates(node)
    assert not (node.root / NEEDRESTART).exists()


def _masked(node: NodeSandbox, timer: str) -> None:
    node.masks(timer)


def _disabled(node: NodeSandbox, timer: str) -> None:
    (node.sandbox / "units" / timer).unlink()


@pytest.mark.parametrize("taken_away", [_masked, _disabled])
def test_a_timer_that_the_image_has_switched_off_stays_off(
    make_node: MakeNode, taken_away: Callable[[NodeSandbox, str], None]
) -> None:
    """`systemctl start` of a masked unit fails, and with it would the set-up; a disabled one would be started."""
    node = make_node(os_release=UBUNTU)
    taken_away(node, UPDATE_TIMERS[1])
    assert node.bootstrap().returncode == 0
    assert [call for call in _of_updates(node) if "timer" in call] == [
        f"systemctl {does} {UPDATE_TIMERS[0]}" for does in ("stop", "start")
    ]
    taken_away(node, UPDATE_TIMERS[0])
    before = len(_of_updates(node))
    assert node.step("updates.sh pause").returncode == node.step("updates.sh resume").returncode == 0
    assert not [call for call in _of_updates(node)[before:] if "timer" in call]


# What needrestart does with its configuration: it restarts a service unless the first expression that matches the
# service's name says 0. https://manpages.ubuntu.com/manpages/noble/man1/needrestart.1.html
_DECIDES = """
our %nrconf = (restart => 'a', defno => 0, override_rc => { qr(^dbus) => 0, qr(^docker) => 0 });
eval do { local(@ARGV, $/) = shift; <> };
die $@ if $@;
for my $rc (@ARGV) {
    my $restart = !$nrconf{defno};
    for my $re (keys %{$nrconf{override_rc}}) {
        next unless $rc =~ /$re/;
        $restart = $nrconf{override_rc}->{$re};
        last;
    }
    print "$rc\\n" if $restart;
}
print "mode $nrconf{restart}\\n";
"""
SERVICES = (
    *("slurmd.service", "slurmd-25.11.service", "sackd.service", "slurmctld.service", "munge.service"),
    *("nvidia-fabricmanager.service", "nvidia-persistenced.service", "docker.service", "containerd.service"),
    *("kubelet.service", "amazon-ssm-agent.service", "cdk-training-cluster-watch.service", "my-training.service"),
)


@pytest.mark.skipif(shutil.which("perl") is None, reason="perl, which reads the configuration, is not installed")
def test_an_update_restarts_no_service_that_a_job_may_need(make_node: MakeNode) -> None:
    node = make_node(os_release=UBUNTU)
    assert node.bootstrap().returncode == 0
    written = node.root / NEEDRESTART
    found = subprocess.run(
        ["perl", "-e", _DECIDES, written, *SERVICES], capture_output=True, text=True, check=True, timeout=60
    )
    assert (found.stdout, found.stderr) == ("mode l\n", "")
    # The packages that the set-up itself installs restart nothing either.
    written.unlink()
    assert node.step("updates.sh pause").returncode == 0
    assert written.exists()
