"""All that is about Nsight Compute itself: sections and rules, checked, run, put into reports, installed, profiled with."""
