"""`tipcheck lite-data`."""
