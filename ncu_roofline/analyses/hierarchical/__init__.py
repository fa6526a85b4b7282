"""The hierarchical roofline: performance over intensity at every memory level."""
