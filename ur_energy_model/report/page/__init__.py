"""The HTML page: layout, chart data and markup."""
