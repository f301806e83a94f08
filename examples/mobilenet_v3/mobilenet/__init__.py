"""What training, export and inference of this repository share."""
