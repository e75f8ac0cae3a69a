"""Releases: a version of the dataset, frozen, checked and comparable.

``create`` freezes a workspace's current tables, ``gates`` are the checks that a release must pass or have waived,
``diff`` compares two, ``import_release`` makes one from the paper's JSON. :mod:`quit.dataset.release` reads them.
"""
