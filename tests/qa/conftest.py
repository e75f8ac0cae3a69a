"""Commands of QA systems run in an empty folder, as those of the construction."""

from tests.commands.conftest import own_folder as own_folder
