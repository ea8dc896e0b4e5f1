"""A cascade, what it promises, and what came of it elsewhere."""
