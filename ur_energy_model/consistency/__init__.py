"""What was said about a recording, compared with what the recording itself shows."""
