"""What every room stands on: errors, files, texts, units."""
