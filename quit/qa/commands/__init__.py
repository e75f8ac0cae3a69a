"""The commands of QA systems."""
