#!/usr/bin/env bash
# Runs as root before a node is set up. A failure ends the set-up, and an alarm reports the node.
set -euo pipefail

getent group research >/dev/null || groupadd --gid 5000 research
