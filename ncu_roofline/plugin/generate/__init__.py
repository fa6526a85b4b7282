"""Sections and rules for Nsight Compute, made from the specification."""
