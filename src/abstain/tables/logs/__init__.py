"""Readers of evaluation logs of language models."""
