"""Reports: recordings evaluated with a model, as an HTML page and static figures."""
