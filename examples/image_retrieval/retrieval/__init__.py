"""What training, export and search of this repository share."""
