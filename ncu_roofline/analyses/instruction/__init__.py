"""The instruction roofline: warp instructions over memory transactions."""
