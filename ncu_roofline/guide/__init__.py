"""The user guide: a page of Markdown per topic, listed in README.md; `ncu-roofline guide` prints them."""
