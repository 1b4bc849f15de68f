#!/bin/bash
# Keeps Ubuntu's own updates away while the node is set up: at first boot they hold /var/lib/apt/lists/lock for minutes,
# for which apt-get does not wait: DPkg::Lock::Timeout is about dpkg's locks. Other systems start none.
#   updates.sh pause   lets no update begin before `resume` or the next boot, and waits for one that has begun
#   updates.sh resume  lets them begin again
# https://documentation.ubuntu.com/server/how-to/software/automatic-updates/
set -euo pipefail
# shellcheck source-path=SCRIPTDIR source=lib.sh
source ./lib.sh

TIMERS=(apt-daily.timer apt-daily-upgrade.timer)
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
if [[ $1 == resume ]]; then
  systemctl start "${TIMERS[@]}"
  exit 0
fi
systemctl stop "${TIMERS[@]}"
# For a quarter of an hour.
retry 20 have_ended || die "the updates that the image starts at boot do not end: see journalctl -u apt-daily-upgrade"
