"""Results as files: pages, figures, tables."""
