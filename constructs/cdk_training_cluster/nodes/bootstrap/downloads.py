"""What a node downloads when it is set up, and the checksum, digest or key that it compares each download with."""

from collections.abc import Mapping
from typing import Final

# Archives with their SHA-256, as prometheus publishes them (sha256sums.txt of each release), and images by digest.
# An image by digest of one architecture can be pulled where Docker refuses an image index.
_ARCHIVES = "https://github.com/prometheus"
DOWNLOADS: Final[Mapping[str, str]] = {
    # The key that signs the agent's packages:
    # https://docs.aws.amazon.com/AmazonCloudWatch/latest/monitoring/verify-CloudWatch-Agent-Package-Signature.html
    "CLOUDWATCH_AGENT_KEY": "937616F3450B7D806CBD9725D58167303B789C72",
    "PROMETHEUS_URL": f"{_ARCHIVES}/prometheus/releases/download/v3.4.1/prometheus-3.4.1.linux-",
    "PROMETHEUS_AMD64": "09203151c132f36b004615de1a3dea22117ad17e6d7a59962e34f3abf328f312",
    "PROMETHEUS_ARM64": "2a85be1dff46238c0d799674e856c8629c8526168dd26c3de2cecfbfc6f9a0a2",
    "NODE_EXPORTER_URL": f"{_ARCHIVES}/node_exporter/releases/download/v1.9.1/node_exporter-1.9.1.linux-",
    "NODE_EXPORTER_AMD64": "becb950ee80daa8ae7331d77966d94a611af79ad0d3307380907e0ec08f5b4e8",
    "NODE_EXPORTER_ARM64": "848f139986f63232ced83babe3cad1679efdbb26c694737edc1f4fbd27b96203",
    # DCGM 4.5.2 with exporter 4.8.1, which AWS's samples pin for Hopper to Blackwell; 4.5.3 with 4.8.2 on Grace.
    "DCGM_AMD64": "sha256:a7ad6547d4546eaf4dd5d6b4c0b4db4101e63ef7dc3cdff7f42b767d2c60b706",
    "DCGM_ARM64": "sha256:60d3b00ac80b4ae77f94dae2f943685605585ad9e92fdccda3154d009ae317cc",
    "DCGM_IMAGE": "nvcr.io/nvidia/k8s/dcgm-exporter",
}
"""The pinned values, by the variable of the scripts that read them."""

UNVERIFIED: Final[Mapping[str, str]] = {
    "https://fsx-lustre-client-repo-public-keys.s3.amazonaws.com/fsx-ubuntu-public-key.asc": (
        "AWS publishes no fingerprint of the key of the FSx for Lustre repository for Ubuntu"
    ),
    "https://docs.aws.amazon.com/fsx/latest/LustreGuide/samples/configure-efa-fsx-lustre-client.zip": (
        "AWS publishes neither a checksum nor a signature of the set-up script of FSx for Lustre for EFA"
    ),
}
"""The downloads that nothing published verifies beyond HTTPS, and the reason."""
