"""Releases: a version of the dataset, frozen, checked and comparable.

``create`` freezes a workspace's current tables, ``release`` reads and verifies what was frozen, ``gates`` are the
checks that a release must pass or have waived, ``diff`` compares two.
"""
