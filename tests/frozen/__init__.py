"""What the product says of real reports, kept as fingerprints: a change of the house must not change an answer.

python -m tests.frozen [--write] [--keep DIR] [NAME...]: compare with fingerprints.json, or write it; DIR gets what was
printed, so that two trees can be compared by diff.
"""
