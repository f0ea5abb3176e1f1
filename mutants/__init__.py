"""Protections and the small patches that remove them. See __main__.py."""
