"""Jobs for the HyperPod training operator: models that refuse what it cannot run, and their manifests."""
