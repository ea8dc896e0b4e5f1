"""A comparison as a document: who leads by each metric on each data set, and how surely."""
