"""A whole run from its trace: operators, what they need, and what of their time they would not need at the GPU's roofs."""
