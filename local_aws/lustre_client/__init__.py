"""A stand-in for a Lustre file system that is linked to S3, and for the client's `lfs` (see there)."""

from local_aws.lustre_client.directory import LFS, LustreDirectory

__all__ = ["LFS", "LustreDirectory"]
