"""A benchmark as a document: who leads where, under which shift, and by how much."""
