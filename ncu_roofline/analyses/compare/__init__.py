"""What changed between reports of one application."""
