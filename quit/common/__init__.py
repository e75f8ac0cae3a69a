"""What every room uses: files, ids, processes, progress. No domain."""
