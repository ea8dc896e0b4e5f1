"""Interfaces for other libraries; each subpackage imports its library."""
