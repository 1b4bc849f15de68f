"""Kubernetes on Amazon EKS."""
