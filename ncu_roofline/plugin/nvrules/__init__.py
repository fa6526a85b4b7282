"""Rules of Nsight Compute, ours and NVIDIA's, on existing reports: no ncu, no GPU."""
