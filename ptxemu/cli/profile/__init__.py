"""What ``ptxemu profile`` shows: text, JSON and a page."""
