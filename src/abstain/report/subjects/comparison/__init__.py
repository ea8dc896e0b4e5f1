"""Report of a comparison of methods by several metrics on several data sets."""
