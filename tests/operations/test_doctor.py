"""Checks of an installation: an extra that is not there is no fault, a package that every command needs is one."""

import importlib.metadata
from pathlib import Path

from quit.operations import doctor


def test_only_a_package_that_every_command_needs_is_a_fault_where_it_is_not_installed(monkeypatch) -> None:
    def version(package: str) -> str:
        raise importlib.metadata.PackageNotFoundError(package)

    monkeypatch.setattr(importlib.metadata, "version", version)
    monkeypatch.setattr(doctor, "_minilm", lambda: "there")
    checks = {check.what: check for check in doctor.examine()}
    assert {name for name, check in checks.items() if not check.ok} == {"datasets", "duckdb", "pyarrow"}
    assert checks["duckdb"].remedy.endswith("-e .") and checks["prefect"].found.endswith("-e '.[flows]'")


def test_settings_that_cannot_be_read_are_one_fault_and_hide_no_other(tmp_path: Path) -> None:
    (tmp_path / "p.yaml").write_text("readers: 3")
    *_, settings, workspace = doctor.examine(str(tmp_path / "p.yaml"), tmp_path / "W")
    assert (settings.what, settings.ok, settings.remedy) == ("settings", False, "Fix the profile.")
    assert (workspace.what, workspace.ok) == ("workspace", False)


def test_a_server_without_an_address_or_with_none_that_is_one_hides_no_other_check(tmp_path: Path, monkeypatch) -> None:
    lines = ['profile = "server"', "[[servers]]", 'name = "server"', 'base_url_env = "MY_SERVER"']
    (tmp_path / "p.toml").write_text("\n".join(lines))
    for address, fault in (("", "set MY_SERVER"), ("http://h:99999/v1", "'http://h:99999/v1' is not an address")):
        monkeypatch.setenv("MY_SERVER", address)
        checks = doctor.examine(str(tmp_path / "p.toml"), tmp_path / "W")
        assert any(fault in check.found for check in checks if check.what.startswith("server of")), checks
        assert checks[-1].what == "workspace" and "quit build makes the tables" not in checks[-1].remedy
