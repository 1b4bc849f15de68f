"""Files for Kubernetes and for SageMaker HyperPod that a cluster file determines."""
