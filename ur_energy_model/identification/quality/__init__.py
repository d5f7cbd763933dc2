"""Quality of a recording: is it suitable for identification?"""
