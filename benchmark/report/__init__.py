"""The report: one page that shows everything, and the files beside it. Nothing is trained."""

from benchmark.report.files import steps, write_page, write_reports, write_table

__all__ = ["steps", "write_page", "write_reports", "write_table"]
