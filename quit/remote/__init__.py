"""Workspaces in an object store or a shared folder: a local mirror, what is in it, and who may write."""
