"""The measured reports as one self-contained HTML page: `page.py` fills the template, `chart.py` draws."""
