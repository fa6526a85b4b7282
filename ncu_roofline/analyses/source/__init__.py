"""Rooflines of source lines, loops and functions inside a kernel, from reports with source counters."""
