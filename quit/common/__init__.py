"""What every package here uses: files, ids, secrets, processes, progress. No domain."""
