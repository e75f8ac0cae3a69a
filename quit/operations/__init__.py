"""Looking after a workspace: backups, garbage, upgrades of its layout, bundles for asking for help."""
