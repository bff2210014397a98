"""Charts with matplotlib, readable in grey. Global settings are not changed."""
