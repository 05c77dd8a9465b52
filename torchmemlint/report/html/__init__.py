"""The findings as one HTML page that needs nothing from elsewhere.

`page.py` fills the template, `charts.py` counts for the bars, `frames.py` marks up code; `page.css` and `page.js` are
put into the page, which lets nothing else run or style it.
"""
