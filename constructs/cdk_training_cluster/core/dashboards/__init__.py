"""Rows and widgets of dashboards."""
