"""The time-based roofline: complexity and time of each kernel."""
