"""Capture adapter for Hugging Face transformers."""
