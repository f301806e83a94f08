"""`tipcheck init` and `tipcheck prepare`."""
