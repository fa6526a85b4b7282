"""One model of a section, from its text or the message that reports embed, and its charts as Nsight Compute draws them."""
