"""Section files, ours or not, held against what Nsight Compute, its releases and the chips make of them."""
