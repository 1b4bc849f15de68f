#!/usr/bin/env bash
# Runs as root when a node is set up.
set -euo pipefail

nvidia-smi --list-gpus >/etc/motd
