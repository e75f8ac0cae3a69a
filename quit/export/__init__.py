"""Exports: a release's tables as files for other tools. ``export`` is the way in, ``FORMATS`` says what there is."""

from quit.dataset.dataset import Dataset
from quit.dataset.release import ReaderInfo
from quit.export.files import Manifest, verify
from quit.export.formats import FORMATS, default_formats, export
from quit.export.training import FineTuning

__all__ = ["FORMATS", "Dataset", "FineTuning", "Manifest", "ReaderInfo", "default_formats", "export", "verify"]
