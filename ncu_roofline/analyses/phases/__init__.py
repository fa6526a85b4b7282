"""The roofline over time inside a kernel: bands of utilisation, and where the work of each slice stands under the roofs."""
