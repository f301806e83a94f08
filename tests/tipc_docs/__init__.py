"""`tipcheck docs`."""
