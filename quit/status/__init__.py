"""What a workspace tells about itself: status, summary, one question's record."""
