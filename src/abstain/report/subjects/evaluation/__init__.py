"""An evaluation: the numbers of every score on every part of the data, and their charts."""
