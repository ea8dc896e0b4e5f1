"""abstain in the shapes other libraries expect; each subpackage loads its library on import."""
