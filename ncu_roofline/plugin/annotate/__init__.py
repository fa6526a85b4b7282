"""Our charts and advice written into a copy of a report that was made without us."""
