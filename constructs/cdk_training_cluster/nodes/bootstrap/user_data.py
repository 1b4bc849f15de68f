"""The user data of a node: it writes the settings down, fetches the scripts and runs them."""

from collections.abc import Mapping, Sequence

from cdk_training_cluster.nodes.bootstrap.shell import shell_assignments

# https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/user-data.html
MAXIMUM_BYTES = 16_384

# It has no comments, which each node group of a template would repeat. An image made of a node that ran before holds
# that node's scripts: they go first. ROOT is empty on a node; tests set it. Where the scripts cannot be had, nothing
# of theirs can report it: `fail` does, by the same three ways as `report_failure` in scripts/lib.sh.
_TEMPLATE = """\
#!/bin/bash
set -u
umask 022
export PATH=$PATH:/snap/bin
root=${ROOT:-}
home=$root/opt/cdk-training-cluster
state=$root/var/lib/cdk-training-cluster
rm -rf "$home/"{user-,}scripts
mkdir -p "$home" "$state"
cat >"$home/settings" <<'SETTINGS'
%s\
SETTINGS
. "$home/settings"
fail() {
  echo "cdk-training-cluster: bootstrap failed at fetch: $1" | tee "$root/dev/console" >&2
  printf '{"state": "failed", "step": "fetch", "message": "%%s"}\\n' "$1" >"$state/bootstrap.json"
  aws cloudwatch put-metric-data --region "$REGION" --namespace "$METRIC_NAMESPACE" \\
    --metric-data "$FAILURE_METRIC"
  exit 1
}
command -v aws >/dev/null || snap install aws-cli --classic || fail 'the image has no AWS CLI'
for try in 1 2 3 4 5 6; do
  why='the scripts could not be fetched: look at the instance role and the way to S3'
  if aws s3 cp --only-show-errors --region "$REGION" "$SCRIPTS" "$home/scripts.zip"; then
    why='the scripts in S3 are not those of this launch template: look at who changed the bucket of assets'
    echo "$SCRIPTS_SHA256  $home/scripts.zip" | sha256sum --check --status &&
      python3 -m zipfile -e "$home/scripts.zip" "$home/scripts" && break
  fi
  [ "$try" = 6 ] && fail "$why"
  sleep $((try * 5))
done
exec bash "$home/scripts/bootstrap.sh"
"""


def render_user_data(settings: Mapping[str, str | Sequence[str]]) -> str:
    """Return the user data.

    Args:
        settings: What the scripts read, by variable.

    Raises:
        ValueError: EC2 would refuse it for its size.
    """
    text = _TEMPLATE % shell_assignments(settings)
    size = len(text.encode())
    if size > MAXIMUM_BYTES:
        raise ValueError(
            f"environment and scripts of a node group must leave the user data below {MAXIMUM_BYTES} bytes, "
            f"got {size}: move what is long into a script"
        )
    return text
