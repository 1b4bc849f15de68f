#!/bin/bash
# Puts the command vt1-utilization on a VT1 node: it prints, for each Alveo U30 card, the percentage of its busiest unit
# that jobs have taken, as the resource manager of the Xilinx Video SDK says it. A card has two devices.
# https://xilinx.github.io/XRM/cli.html
set -euo pipefail
cat >"${ROOT:-}/usr/local/bin/vt1-utilization" <<'END'
#!/bin/bash
set -euo pipefail
if [[ -f /opt/xilinx/xrm/setup.sh ]]; then source /opt/xilinx/xrm/setup.sh >/dev/null; fi
request=$(mktemp)
trap 'rm -f "$request"' EXIT
echo '{"request": {"name": "list", "requestId": 1}}' >"$request"
xrmadm "$request" | python3 -IS -c '
import json, sys

response = json.load(sys.stdin)["response"]
if response["status"] != "ok":
    sys.exit("xrmadm: " + json.dumps(response)[:300])
devices = []
for number in range(int(response["data"]["deviceNumber"])):
    used = []
    for unit in response["data"]["device_%d" % number].values():
        for name, load in unit.items() if isinstance(unit, dict) else ():
            if name.strip() == "usedLoad":
                part, whole = load.split(" of ")
                used.append(100 * int(part) / int(whole))
    # One without units has no image loaded, and says nothing.
    devices.append(max(used))
for first, second in zip(devices[::2], devices[1::2]):
    print(max(first, second))
'
END
chmod 755 "${ROOT:-}/usr/local/bin/vt1-utilization"
