"""Amazon SageMaker HyperPod, on Slurm or on EKS."""
