#!/bin/bash
# Keeps Ubuntu's own updates away while the node is set up: at first boot they hold /var/lib/apt/lists/lock for minutes,
# for which apt-get does not wait: DPkg::Lock::Timeout is about dpkg's locks. Other systems start none.
#   updates.sh pause   lets no update begin before `resume` or the next boot, and waits for one that has begun
#   updates.sh resume  lets them begin again
# https://documentation.ubuntu.com/server/how-to/software/automatic-updates/
set -euo pipefail
# shellcheck source-path=SCRIPTDIR source=lib.sh
source ./lib.sh

SERVICES=(apt-daily.service apt-daily-upgrade.service)

# An update that is ended halfway leaves packages half installed.
have_ended() {
  local states
  # It fails where any of them is not active.
  states=$(systemctl is-active "${SERVICES[@]}" || true)
  ! grep -Eqx 'active|activating|deactivating' <<<"$states"
}

case " $(os_release ID) $(os_release ID_LIKE) " in
  *" ubuntu "* | *" debian "*) ;;
  *) exit 0 ;;
esac
# One that the image has masked or disabled stays as it is: systemctl starts no masked unit.
timers=()
for timer in apt-daily.timer apt-daily-upgrade.timer; do
  if systemctl is-enabled --quiet "$timer" 2>/dev/null; then timers+=("$timer"); fi
done
if [[ $1 == resume ]]; then
  if ((${#timers[@]})); then systemctl start "${timers[@]}"; fi
  exit 0
fi
# Since Ubuntu 24.04, needrestart restarts whatever service uses a library that was updated: slurmd with all its jobs,
# containers, a training that is a service of its own. Updates are still installed; what runs uses them after the next
# boot. The mode alone is not enough: NEEDRESTART_MODE in the environment of apt goes before it.
# https://discourse.ubuntu.com/t/needrestart-changes-in-ubuntu-24-04-service-restarts/44671
# https://github.com/awslabs/awsome-distributed-ai/blob/main/architectures/aws-pcs/docs/OPERATIONS.md
write_file "$ROOT/etc/needrestart/conf.d/90-cdk-training-cluster.conf" <<'PERL'
# No service is restarted under a job when a library is updated.
$nrconf{restart} = 'l';
$nrconf{override_rc}{qr(.)} = 0;
PERL
if ((${#timers[@]})); then systemctl stop "${timers[@]}"; fi
# For a quarter of an hour.
retry 20 have_ended || die "the updates that the image starts at boot do not end: see journalctl -u apt-daily-upgrade"
