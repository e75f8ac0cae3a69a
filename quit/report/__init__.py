"""What people look at: the report of a workspace as one HTML page, and a local view to search and open its
questions."""
