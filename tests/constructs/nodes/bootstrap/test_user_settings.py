"""What reaches the node of the user's own: variables as they were written, and scripts as they are."""

import json
import shlex
import subprocess
from collections.abc import Callable

import pytest

from node_sandbox import NodeSandbox

MakeNode = Callable[..., NodeSandbox]

HOSTILE = [
    "it's",
    'a "quoted" word',
    "$HOME ${HOME} $(touch /tmp/broken) `id`",
    "back\\slash and \\n",
    "100% %h",
    "# no comment; && || > <",
    "  blanks around  ",
    "ünïcode",
    "",
]


def test_a_value_reaches_shells_and_services_as_it_was_written(make_node: MakeNode) -> None:
    node = make_node(ENVIRONMENT=[f"HOSTILE_{number}={value}" for number, value in enumerate(HOSTILE)])
    assert node.step("environment.sh").returncode == 0
    print_all = "".join(f'; printf "<%s>" "$HOSTILE_{number}"' for number in range(len(HOSTILE)))
    for shell in ("sh", "bash"):
        command = f". {shlex.quote(str(node.root))}/etc/profile.d/cdk-training-cluster.sh{print_all}"
        told = subprocess.run([shell, "-c", command], capture_output=True, text=True, check=True)
        assert told.stdout == "".join(f"<{value}>" for value in HOSTILE)
    unit = node.read("etc/systemd/system.conf.d/90-cdk-training-cluster-environment.conf").splitlines()
    assert [_as_systemd_reads(line) for line in unit[1:]] == [
        f"HOSTILE_{number}={value}" for number, value in enumerate(HOSTILE)
    ]


def test_jobs_find_what_they_may_know_of_the_cluster_in_a_file(make_node: MakeNode) -> None:
    own = ["CHECKPOINT_URL=s3://runs--use1-az4--x-s3/", "cluster=mine", "A=b"]
    node = make_node(ENVIRONMENT=own, RUNS_TABLE="pod-Runs-1A", NODE_HOUR_USD="55.04")
    assert node.step("environment.sh").returncode == 0
    assert json.loads(node.read("etc/cdk-training-cluster/job.json")) == {
        "cluster": "llama",
        "node_group": "workers",
        "region": "us-east-1",
        "runs_table": "pod-Runs-1A",
        "mount_point": "/fsx",
        "node_hour_usd": "55.04",
        "checkpoint_url": "s3://runs--use1-az4--x-s3/",
    }


def test_user_scripts_see_the_node_s_variables_and_run_as_they_are(make_node: MakeNode) -> None:
    node = make_node(ENVIRONMENT=["GREETING=it's $5"])
    shebang = "#!/usr/bin/env python3\nimport os; print(os.environ['GREETING'])\n"
    plain = 'echo "$TRAINING_CLUSTER/$TRAINING_NODE_GROUP $TRAINING_FILE_SYSTEM $GREETING $HOME"\n'
    node.change_settings(SCRIPTS_BEFORE=[node.user_script("py", shebang)])
    node.change_settings(SCRIPTS_AFTER=[node.user_script("a name with 'quotes' $x", plain)])
    assert node.bootstrap().returncode == 0
    log = node.read("var/log/cdk-training-cluster.log")
    assert "\nit's $5\n" in log
    assert "\nllama/workers /fsx it's $5 /root\n" in log
    assert node.steps[-3:] == ["after: a name with 'quotes' $x", "updates", "watch"]


@pytest.mark.parametrize("before", ["", "an earlier line\n"])
def test_users_of_the_node_read_neither_user_scripts_nor_what_these_print(make_node: MakeNode, before: str) -> None:
    """They run as root, and may hold passwords."""
    node = make_node()
    node.change_settings(SCRIPTS_AFTER=[node.user_script("login.sh", "echo secret\n")])
    log = node.root / "var/log/cdk-training-cluster.log"
    if before:
        log.parent.mkdir(parents=True, exist_ok=True)
        log.write_text(before)
        log.chmod(0o644)
    assert node.bootstrap().returncode == 0
    assert log.read_text().startswith(before)
    assert "\nsecret\n" in log.read_text()
    assert [path.stat().st_mode & 0o077 for path in (log, node.home / "user-scripts")] == [0, 0]


@pytest.mark.parametrize(
    ("script", "message"),
    [
        (
            'echo far; echo too; echo many; echo; echo "no \\"wheel\\" for this"; exit 3\n',
            'too many no "wheel" for this',
        ),
        ("exit 3\n", "it said nothing and ended with exit status 3"),
        ("echo é\\\\t; printf '%0600d' 7; exit 1\n", "é\\t " + "0" * 495),
    ],
)
def test_a_user_script_that_fails_tells_its_last_words(make_node: MakeNode, script: str, message: str) -> None:
    node = make_node()
    node.change_settings(SCRIPTS_AFTER=[node.user_script("pip.sh", script)])
    assert node.bootstrap().returncode == 1
    assert node.state == {"state": "failed", "step": "after: pip.sh", "message": message}


def test_what_a_user_script_leaves_running_does_not_hold_the_node_up(make_node: MakeNode) -> None:
    node = make_node()
    node.change_settings(SCRIPTS_AFTER=[node.user_script("server.sh", "tail -f /dev/null &\necho $! >server.pid\n")])
    assert node.bootstrap().returncode == 0
    subprocess.run(["kill", node.read("server.pid").strip()], check=True)


def _as_systemd_reads(line: str) -> str:
    """Undo what systemd.exec(5) and systemd.unit(5) say of quotes, backslashes and specifiers."""
    name, quoted = line.split("=", 1)
    assert name == "DefaultEnvironment"
    assert quoted.startswith('"')
    assert quoted.endswith('"')
    text, result = quoted[1:-1], ""
    while text:
        if text.startswith(("\\\\", '\\"')):
            result, text = result + text[1], text[2:]
            continue
        assert text[0] not in '\\"', "an unescaped quote or backslash ends the value"
        result, text = result + text[0], text[1:]
    assert "%" not in result.replace("%%", "")
    return result.replace("%%", "%")
