"""Whether a recording is fit for identification."""
