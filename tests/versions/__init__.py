"""What each published version of the formats left on disk, one archive a version: a workspace with a release, an export
of each kind, and kept replies of a language model."""
