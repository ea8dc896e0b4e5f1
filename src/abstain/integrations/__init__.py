"""Interfaces to other libraries. Each subpackage imports one library."""
