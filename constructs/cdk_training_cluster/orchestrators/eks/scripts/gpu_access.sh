#!/bin/bash
# Lets NVIDIA's container toolkit give a container the GPUs that the device plugin mounts into it, and no others: with
# the other setting, each container with NVIDIA_VISIBLE_DEVICES=all gets all GPUs of the node, without a request.
# The toolkit reads the file for each container that it starts.
# https://github.com/NVIDIA/nvidia-container-toolkit/blob/v1.20.0/internal/config/image/cuda_image.go
set -euo pipefail

if ! command -v nvidia-ctk >/dev/null; then
  echo "the image of this node has no nvidia-ctk: install NVIDIA's container toolkit on the image" >&2
  exit 1
fi
nvidia-ctk --quiet config --in-place --config-file /etc/nvidia-container-runtime/config.toml \
  --set accept-nvidia-visible-devices-envvar-when-unprivileged=false \
  --set accept-nvidia-visible-devices-as-volume-mounts=true
