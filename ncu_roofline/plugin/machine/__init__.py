"""Deploying the plugin pack for Nsight Compute, taking it away again, and what this machine lacks for it."""
