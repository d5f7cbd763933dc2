"""CSV recordings of RTDE data, read strictly and in bounded memory."""
