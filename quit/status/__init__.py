"""What a workspace tells about itself: status, summary, metrics, diary, one question's story."""
