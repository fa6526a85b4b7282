"""Reports of many MPI ranks, merged by kernel."""
