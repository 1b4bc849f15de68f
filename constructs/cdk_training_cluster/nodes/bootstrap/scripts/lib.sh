# shellcheck shell=bash
# What every step has at hand. ROOT is empty on a node; tests set it to a directory of their own.

# shellcheck disable=SC2034 # the files that source this one use these

ROOT=${ROOT:-}
HOME_DIR=$ROOT/opt/cdk-training-cluster
SCRIPTS_DIR=$HOME_DIR/scripts
STATE_DIR=$ROOT/var/lib/cdk-training-cluster
LOG=$ROOT/var/log/cdk-training-cluster.log
# Holds the id of the instance that was set up to the end, on nodes for which a lifecycle hook waits.
SET_UP=$STATE_DIR/set-up
# Exists once every step of the set-up has ended well.
COMPLETE=$STATE_DIR/complete
# Where users of the node get credentials of the jobs' role. None but root can listen below port 1024, nor do clients of
# NFS and Lustre take a port below 512.
JOB_CREDENTIALS=http://127.0.0.1:301/job-role
# Root has the nodes' role.
unset AWS_CONTAINER_CREDENTIALS_FULL_URI
# cloud-init sets no HOME, which many a user's script relies on.
export HOME=${HOME:-/root} PATH=$PATH:/snap/bin DEBIAN_FRONTEND=noninteractive

# shellcheck source=/dev/null
source "$HOME_DIR/settings"

set -E
trap 'printf "%s, line %s: %s: exit status %s\n" "${0##*/}" "$LINENO" "$BASH_COMMAND" "$?" >&2' ERR

log() {
  printf '%s %s\n' "$(date -u +%FT%TZ)" "$*"
}

die() {
  printf '%s\n' "$*" >&2
  exit 1
}

# retry ATTEMPTS COMMAND...: waits longer each time.
retry() {
  local attempts=$1 attempt
  shift
  for ((attempt = 1; ; attempt++)); do
    if "$@"; then return 0; fi
    if ((attempt >= attempts)); then return 1; fi
    log "$1 failed (attempt $attempt of $attempts)"
    sleep $((attempt * 5))
  done
}

# write_file PATH: writes standard input there, whole or not at all.
write_file() {
  mkdir -p "${1%/*}"
  cat >"$1.new"
  mv "$1.new" "$1"
}

# set_fstab MOUNT_POINT LINE: makes LINE the one line of /etc/fstab for that mount point.
set_fstab() {
  local fstab=$ROOT/etc/fstab
  if grep -qxF -- "$2" "$fstab" 2>/dev/null; then return 0; fi
  {
    if [[ -f $fstab ]]; then awk -v mount_point="$1" '/^[[:space:]]*#/ || $2 != mount_point' "$fstab"; fi
    printf '%s\n' "$2"
  } | write_file "$fstab"
}

# os_release NAME: a field of /etc/os-release.
os_release() {
  # shellcheck source=/dev/null
  (source "$ROOT/etc/os-release" && printf '%s' "${!1:-}")
}

# package_manager: dnf (Amazon Linux, Fedora, RHEL) or apt (Ubuntu, Debian).
package_manager() {
  case " $(os_release ID) $(os_release ID_LIKE) " in
    *" amzn "* | *" fedora "* | *" rhel "*) echo dnf ;;
    *" ubuntu "* | *" debian "*) echo apt ;;
    *) die "this operating system is not known: the image must be Amazon Linux, Fedora, RHEL, Ubuntu or Debian" ;;
  esac
}

# install PACKAGE...: updates.sh keeps updates away; apt waits for others that hold dpkg's lock, dnf for all.
install() {
  local manager
  manager=$(package_manager)
  log "installing $*"
  retry 3 "${manager}_install" "$@"
}

dnf_install() {
  dnf install -y "$@"
}

apt_install() {
  apt-get -o DPkg::Lock::Timeout=300 update -q && apt-get -o DPkg::Lock::Timeout=300 install -qy "$@"
}

# download URL PATH
download() {
  curl --fail --silent --show-error --location --retry 5 --output "$2" "$1"
}

# check_sha256 PATH SHA256: a file that differs is removed.
check_sha256() {
  if printf '%s  %s\n' "$2" "$1" | sha256sum --check --status -; then return 0; fi
  rm -f "$1"
  return 1
}

# is_signed PATH FINGERPRINT: whether PATH.sig is a signature of it with the key of that fingerprint, which PATH.gpg holds.
is_signed() {
  local keyring status
  keyring=$(mktemp -d)
  status=$(gpg --homedir "$keyring" --batch --quiet --import "$1.gpg" &&
    gpg --homedir "$keyring" --batch --status-fd 1 --verify "$1.sig" "$1") || status=
  rm -rf "$keyring"
  # The last field of VALIDSIG is the primary key: https://github.com/gpg/gnupg/blob/master/doc/DETAILS
  [[ $status =~ VALIDSIG\ [^$'\n']*\ $2($'\n'|$) ]]
}

METADATA=http://169.254.169.254/latest

metadata() {
  curl --fail --silent --show-error --max-time 5 "$@"
}

# find_instance: sets instance.
# https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/configuring-instance-metadata-service.html
find_instance() {
  local token
  token=$(metadata --request PUT --header "X-aws-ec2-metadata-token-ttl-seconds: 60" "$METADATA/api/token") &&
    instance=$(metadata --header "X-aws-ec2-metadata-token: $token" "$METADATA/meta-data/instance-id")
}

# fill TEMPLATE PLACEHOLDER=VALUE...: prints a JSON file with values for its placeholders.
fill() {
  python3 -IS - "$@" <<'PYTHON'
import json, sys

names = dict(argument.split("=", 1) for argument in sys.argv[2:])


def fill(node):
    if isinstance(node, dict):
        return {key: fill(value) for key, value in node.items()}
    if isinstance(node, list):
        return [fill(item) for item in node]
    return names.get(node, node) if isinstance(node, str) else node


with open(sys.argv[1]) as template:
    print(json.dumps(fill(json.load(template)), indent=2))
PYTHON
}

# report_state STATE STEP MESSAGE: what an operator reads on the node.
report_state() {
  python3 -IS - "$1" "$2" "$3" <<'PYTHON' | write_file "$STATE_DIR/bootstrap.json"
import json, sys
print(json.dumps(dict(zip(("state", "step", "message"), sys.argv[1:]))))
PYTHON
}

# to_console TEXT: what EC2's get-console-output shows.
to_console() {
  printf 'cdk-training-cluster: %s\n' "$1" >>"$ROOT/dev/console"
}

# report_failure STEP MESSAGE [counted]: on the node, on its console, and in CloudWatch, unless it is counted already. None
# of them hides the failure itself.
report_failure() {
  report_state failed "$1" "$2" || log "the state could not be written"
  report_trouble "$@"
}

# report_trouble STEP MESSAGE [counted]: likewise, of a node whose set-up is as it was.
report_trouble() {
  log "step $1 failed: $2"
  to_console "bootstrap failed at $1: $2" || log "the console could not be written"
  if [[ -n ${3:-} ]]; then return; fi
  aws cloudwatch put-metric-data --region "$REGION" --namespace "$METRIC_NAMESPACE" \
    --metric-data "$FAILURE_METRIC" || log "the failure could not be counted in CloudWatch"
}

# report_collector_failure MESSAGE: likewise, of a node that works, but does not send all of its metrics to Prometheus.
report_collector_failure() {
  log "collector: $1"
  to_console "ready, but not all of its metrics reach Prometheus: $1" || log "the console could not be written"
  aws cloudwatch put-metric-data --region "$REGION" --namespace "$METRIC_NAMESPACE" \
    --metric-data "$COLLECTOR_FAILURE_METRIC" || log "the failure could not be counted in CloudWatch"
}
