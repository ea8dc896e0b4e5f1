"""A decision rule, what it promises, and what came of it elsewhere."""
